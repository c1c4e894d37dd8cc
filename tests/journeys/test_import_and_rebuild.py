"""Much knowledge at once: imported once, folded anew under the eyes of searchers, handed out as files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.answers.knowledge import Item
from kledger.contract.errors import InvalidPayload, LedgerError
from tests.journeys.running_node import (
    ENVIRONMENT,
    ROOT,
    Importing,
    RunningNode,
    assert_found,
    assert_kept_once,
    caught_up,
    head,
    items,
    result_of,
    running,
    until,
    word_of,
)
from tests.patience import PATIENCE
from tests.processes import started

COUNT = 400
UNTOUCHED = 40  # from here on nothing is revised or retired
TLDR = ROOT.parent / "shared" / "data" / "tldr" / "knowledge.jsonl"


@pytest.fixture(scope="module")
def stocked(shared_node: RunningNode) -> RunningNode:
    """The shared node with COUNT generated items, some revised, rated and retired."""
    with shared_node.client() as ledger:
        told = ledger.save_many(items(COUNT))
        assert (told["saved"], told["refused"]) == (COUNT, 0)
        keeper = ledger.acting_as(agent="storekeeper")
        for number in range(0, UNTOUCHED, 4):
            keeper.revise(f"part-{number:05d}", content=f"Moved to shelf {number}.", expected_version=1)
            keeper.rate(f"part-{number + 1:05d}", "harmful" if number % 3 else "helpful", reason="tried it")
            keeper.retire(f"part-{number + 2:05d}", reason="used up")
        caught_up(ledger)
    return shared_node


def command(node: RunningNode, *arguments: str) -> dict[str, Any]:
    """What the command answers with --json, in a process of its own; it has to exit with 0."""
    ran = started.kledger(*arguments, "--json", environment={**ENVIRONMENT, "KLEDGER_URL": node.url}, within=400)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


class Searching:
    """A steady stream of searches, from several callers at once, that has to see no error at all."""

    def __init__(self, url: str) -> None:
        self._url, self._callers = url, 4
        self._stop = threading.Event()
        self.answered = 0
        self.errors: list[str] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._search()), daemon=True)

    def __enter__(self) -> Searching:
        self._thread.start()
        until(lambda: self.answered or self.errors, "the first search is answered")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    async def _search(self) -> None:
        async with AsyncLedgerClient(self._url, retries=0) as ledger:
            await asyncio.gather(*(self._call(ledger, caller) for caller in range(self._callers)))

    async def _call(self, ledger: AsyncLedgerClient, caller: int) -> None:
        number = UNTOUCHED + caller
        while not self._stop.is_set():
            try:
                found = await ledger.search(word_of(number), top_k=1, record=False)
                item = await ledger.get(f"part-{number:05d}")
            except LedgerError as error:
                self.errors.append(f"{error.code}: {error.message}")
                return
            if [hit["id"] for hit in found["results"]] != [item["id"]]:
                self.errors.append(f"{word_of(number)} was not found: {found}")
                return
            self.answered += 1
            number = UNTOUCHED + (number - UNTOUCHED + self._callers) % (COUNT - UNTOUCHED)


def test_an_import_is_there_once_however_often_it_is_imported(stocked: RunningNode, ledger: LedgerClient) -> None:
    before = head(ledger)
    told = ledger.save_many(items(COUNT))
    # what was revised since was saved once all the same
    assert (told["saved"], told["unchanged"], told["refused"]) == (0, COUNT, 0)
    assert head(ledger) == before
    status = caught_up(ledger)
    assert [(view["lag_events"], view["lag_seconds"]) for view in status["views"]] == [(0, 0.0), (0, 0.0)]
    assert_found(ledger, [3, 7, 199, COUNT - 1])


def test_folding_from_zero_gives_the_live_views(stocked: RunningNode, ledger: LedgerClient) -> None:
    told = result_of(ledger, "verify")
    assert (told["equal"], told["differences"], told["position"]) == (True, [], head(ledger))
    assert {view["view"]: view["rows"] for view in told["views"]}["events"] == told["position"] - told["refused"]


def test_a_rebuild_refuses_no_search_and_loses_no_write(stocked: RunningNode, ledger: LedgerClient) -> None:
    views = stocked.data / "views"
    before = (views / "current").read_text()
    with Searching(stocked.url) as searching:
        writing = Importing(stocked.url, items(300, "during"), chunk=10).start()
        answered = searching.answered
        told = result_of(ledger, "rebuild")
        writing.end()
        answered = searching.answered - answered
    assert searching.errors == []
    assert answered > 0, "no search was answered while the views were folded anew"
    assert writing.error is None
    assert (told["equal"], told["swapped"], told["differences"]) == (True, True, [])
    assert told["live"]["digest"] == told["rebuilt"]["digest"]
    after = (views / "current").read_text()
    assert after != before
    caught_up(ledger)
    until(lambda: [file.name for file in views.glob("view-*.duckdb")] == [after.strip()], "the old file is removed")
    assert_found(ledger, [0, 150, 299], "during")
    assert result_of(ledger, "verify")["equal"] is True


def test_jobs_that_are_asked_for_at_once_all_end_well(stocked: RunningNode, ledger: LedgerClient) -> None:
    kinds: list[Any] = ["rebuild", "verify", "snapshot", "rebuild", "verify"]
    started = [ledger.start_job(kind) for kind in kinds]
    results = [ledger.wait_job(job["id"], timeout=PATIENCE)["result"] or {} for job in started]
    assert [result["equal"] for result in results if "equal" in result] == [True] * 4


def test_a_snapshot_is_a_file_for_any_duckdb(stocked: RunningNode, ledger: LedgerClient) -> None:
    told = result_of(ledger, "snapshot")
    reader = (
        "import duckdb, sys; con = duckdb.connect(sys.argv[1], read_only=True);"
        "print(con.execute('SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM refused_events), position"
        " FROM checkpoints').fetchone());"
        "as_of = 'knowledge_as_of((SELECT max(position) FROM checkpoints))';"
        "print(con.execute(f\"SELECT count(*) FROM {as_of} WHERE id LIKE 'part-%'\").fetchone())"
    )
    # held open by its reader, the node goes on and makes another one
    ran = subprocess.run(
        [sys.executable, "-I", "-c", reader, told["file"]],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [str((told["position"], told["position"])), f"({COUNT},)"]
    assert result_of(ledger, "snapshot")["file"] == told["file"]
    for number in range(5):  # questions of every kind have been asked, and none of them keeps a file from being whole
        saved = ledger.save(f"Sweep yard {number}", "On Fridays.", ["plan"], scopes=["public"])
        ledger.get(saved["id"])
        ledger.get(saved["id"], as_of=datetime.now(UTC))
        ledger.lineage(saved["id"])
        later = result_of(ledger, "snapshot")
        assert later["position"] >= saved["position"]
        assert later["file"] != told["file"]
    assert Path(told["file"]).exists()


@pytest.mark.parametrize("by", ["position", "time"])
def test_a_replay_to_a_moment_is_the_state_as_of_it(
    stocked: RunningNode, ledger: LedgerClient, tmp_path: Path, by: str
) -> None:
    name = f"clock-{by}"
    ana = ledger.acting_as(user="ana")
    saved = ana.save(f"Wind the {name}", "Once a day.", ["plan"], id=name, scopes=["public"])
    moment = datetime.now(UTC)
    ana.revise(name, content="Once a week.")
    ana.rate(name, "helpful", outcome="it ticks")
    then: list[Item] = []
    while page := ledger.list(limit=1000, offset=len(then), status="all", as_of=saved["position"])["results"]:
        then += page

    into = tmp_path / "audit.duckdb"
    told = command(
        stocked,
        "replay",
        "--into",
        str(into),
        "--to",
        str(saved["position"]) if by == "position" else moment.isoformat(),
    )
    assert told["position"] == saved["position"]
    reader = (
        "import duckdb, json, sys; con = duckdb.connect(sys.argv[1], read_only=True);"
        "print(json.dumps(con.execute('SELECT id, version, content, helpful, harmful FROM knowledge_as_of("
        f"{saved['position']})"
        " WHERE list_contains(scopes, $$public$$) ORDER BY id').fetchall()))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", reader, str(into)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ran.returncode == 0, ran.stderr
    replayed = json.loads(ran.stdout)
    assert replayed == sorted(
        [item["id"], item["version"], item["content"], item["eval"]["helpful"], item["eval"]["harmful"]]
        for item in then
    )
    assert [row[2] for row in replayed if row[0] == name] == ["Once a day."]


def test_a_replay_into_a_file_that_is_there_or_cannot_be_or_beyond_the_head_is_refused(
    stocked: RunningNode, ledger: LedgerClient, tmp_path: Path
) -> None:
    there = tmp_path / "there.duckdb"
    there.write_text("mine")
    new, tomorrow = tmp_path / "new.duckdb", datetime.now(UTC) + timedelta(days=1)
    unwritable = tmp_path / "why?.duckdb"  # DuckDB takes what follows for no part of the path
    for to, into in ((None, there), (head(ledger) + 1, new), (tomorrow, new), (None, unwritable)):
        with pytest.raises(InvalidPayload):
            ledger.wait_job(ledger.start_job("replay", to=to, into=into)["id"], timeout=PATIENCE)
    assert there.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [there]
    whole = ledger.start_job("replay", into=tmp_path / "all.duckdb")
    result = ledger.wait_job(whole["id"], timeout=PATIENCE)["result"]
    assert result is not None
    assert result["position"] == head(ledger)


@pytest.fixture(scope="module")
def tldr_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    if not TLDR.exists():
        pytest.skip("the real items are not beside this copy: ../shared/data/tldr/knowledge.jsonl")
    with running(tmp_path_factory.mktemp("tldr") / "data") as node:
        yield node


def test_the_real_items_are_imported_once_and_rebuilt_under_searches(tldr_node: RunningNode, tmp_path: Path) -> None:
    """Of each part of them: every eighth."""
    lines, real = TLDR.read_bytes().splitlines()[::8], tmp_path / "real.jsonl"
    real.write_bytes(b"\n".join(lines))
    first = command(tldr_node, "import", str(real))
    assert (first["lines"], first["saved"], first["refused"]) == (len(lines), len(lines), 0)
    with tldr_node.client() as ledger:
        before = caught_up(ledger)["stream"]["head"]
        again = command(tldr_node, "import", str(real))
        assert (again["saved"], again["unchanged"], again["refused"]) == (0, len(lines), 0)
        assert head(ledger) == before
        ledger.save_many(items(COUNT))
        caught_up(ledger)
        with Searching(tldr_node.url) as searching:
            rebuilt = command(tldr_node, "rebuild")
        assert searching.errors == []
        assert (rebuilt["equal"], rebuilt["swapped"]) == (True, True)
        assert command(tldr_node, "verify")["equal"] is True
        status = command(tldr_node, "status")
        assert {view["lag_events"] for view in status["views"]} == {0}
        assert_kept_once(ledger, {})
