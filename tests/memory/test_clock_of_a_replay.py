"""What became of short memories comes out the same whatever the clock of a replay says, and asks no model.

The clock is shifted for real: of a process that folds on every road, and of the one that rebuilds for a node.
"""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kledger import LedgerClient
from kledger.contract.memory import Memory
from ledger.event import Fact, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeExpired, KnowledgePromoted
from ledger.privacy.master_key import kept_master_key
from ledger.store.jetstream import JetStreamLedger
from projections.live.rebuild import rebuild_in_own_process
from tests.journeys.running_node import ENVIRONMENT, ROOT, RunningNode, caught_up, result_of, running, until
from tests.memory.folded import ASKED, TAKEN
from tests.memory.test_lives import ANN, EVE, NODE, THREE, at, expired, lives, mood, promoted, recalled
from tests.openai_server import embedding_endpoint
from tests.patience import PATIENCE
from tests.processes import shifted
from tests.projections.histories import histories, replace_position
from tests.reactors.conftest import models

DAY, YEAR = 86_400, 366
WEEK = 7 * DAY
CLOCKS = (0, YEAR, -YEAR)
# Of the stories, whatever their lifetime: by the log's times alone.
BECAME = [
    ["story-0", "k1", "semantic", "active", 2],
    ["story-1", "k1", "semantic", "active", 2],
    ["story-2", "k1", "short", "expired", 2],
    ["story-3", "k1", "short", "active", 1],
]
EARLY_DOUBLED_OR_FOREIGN = [
    *((5, "illegal_state"), (6, "not_reader"), (10, "illegal_state"), (14, "not_owner"), (15, "illegal_state")),
    *((17, "illegal_state"), (18, "illegal_state"), (19, "illegal_state"), (22, "illegal_state")),
    (23, "illegal_state"),
]


def begun(days: int, log: list[StoredEvent]) -> list[StoredEvent]:
    """The log as if its first event had been kept so many days ago."""
    later = time.time_ns() - days * DAY * 10**9 - log[0].stored_ns
    return [each._replace(stored_ns=each.stored_ns + later) for each in log]


def stories(life: int) -> list[list[tuple[int, NewEvent]]]:
    """Short memories of this lifetime, in seconds, and all that may befall them, also what the gate refuses."""
    born, over = (0, mood(memory=Memory(layer="short", kind="mood", lifetime=life))), expired(after=life)
    recalls = [(life // 2 * (n + 1), each) for n, each in enumerate(THREE)]
    return [
        [born, *recalls, (2 * life, promoted()), (2 * life, promoted()), (9 * life, over)],
        [born, (1, promoted()), (1, promoted(EVE, cause="confirmed")), (2, promoted(ANN, cause="confirmed"))],
        [
            *(born, (life - 1, over), (life, recalled("late")), (life + 1, expired(EVE, after=life))),
            *((life + 1, expired(after=life + 1)), (life + 1, over), (life + 2, over), (life + 2, promoted())),
        ],
        [born, *recalls[:2], (life + life // 2 - 1, over)],
    ]


def told_at_once(life: int) -> list[StoredEvent]:
    """All the stories as one log, each in a tenant of its own."""
    told = [
        (second, replace(event, org=f"story-{number}", id=uuid.uuid4().hex))
        for number, story in enumerate(stories(life))
        for second, event in story
    ]
    return at(*sorted(told, key=itemgetter(0)))


def drawn(logs: st.SearchStrategy[list[StoredEvent]], count: int) -> list[list[StoredEvent]]:
    """So many logs of a strategy."""
    found = []

    @settings(max_examples=count, phases=(Phase.generate,), deadline=None, database=None)
    @given(logs)
    def draw(log: list[StoredEvent]) -> None:
        found.append(log)

    draw()
    return found


def one_after_another(logs: list[list[StoredEvent]]) -> list[StoredEvent]:
    """The logs as one."""
    return [replace_position(event, n) for n, event in enumerate((each for log in logs for each in log), 1)]


def replayed(file: Path) -> dict[int, dict[str, Any]]:
    """What processes say of the logs in the file, one with each clock."""
    words = [sys.executable, "-m", "tests.memory.folded", str(file)]
    begun_all = {
        days: subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, env={**ENVIRONMENT, **shifted.by(days)})
        for days in CLOCKS
    }
    try:
        told = {days: process.communicate(timeout=PATIENCE)[0] for days, process in begun_all.items()}
    finally:
        for process in begun_all.values():
            process.kill()
    assert {process.returncode for process in begun_all.values()} == {0}
    return {days: orjson.loads(said) for days, said in told.items()}


def assert_off(clock: float, days: int) -> None:
    assert abs(clock - time.time() - days * DAY) < DAY, f"the clock is not {days} days off"


@shifted.can_shift
def test_every_split_road_and_delivery_decides_alike_a_year_ahead_and_a_year_back(tmp_path: Path) -> None:
    logs = [begun(3, told_at_once(WEEK)), begun(10, told_at_once(100))]  # by a clock of today alive, and over
    logs += [begun(10, log) for log in (max(drawn(lives(), 20), key=len), one_after_another(drawn(histories(), 12)))]
    file = tmp_path / "logs"
    file.write_bytes(pickle.dumps(logs))
    told = replayed(file)
    for days, said in told.items():
        for clock in said["clocks"]:
            assert_off(clock, days)
        assert len(said["logs"]) == len(logs)
    for number in range(len(logs)):
        first = told[0]["logs"][number]
        assert len(first) == len(TAKEN)
        (alike,) = {orjson.dumps(outcome) for outcome in first.values()}
        for days, said in told.items():
            for way, outcome in said["logs"][number].items():
                assert orjson.dumps(outcome) == alike, f"log {number}, {way}, a clock {days} days off"
    for said in told[0]["logs"][:2]:
        became = said["a rebuild, small batches, by the models"]
        assert became["memories"] == BECAME
        assert [(position, code) for position, code, _ in became["refused"]] == EARLY_DOUBLED_OR_FOREIGN


def remember(op: LedgerClient) -> None:
    """Memories of ann's: one that the model found, and short ones that end in each way."""
    ann = op.acting_as(user="ann")
    ann.extract("The gate opens at eight.")
    ann.remember("stays for a week", "short", kind="decision", id="stays")
    ann.remember("over at once", "short", kind="mood", lifetime=1, id="over")
    ann.remember("said again", "short", kind="mood", id="confirmed")
    ann.confirm("confirmed")
    ann.remember("asked for often", "short", kind="mood", id="recalled")
    caught_up(op)
    for trace in ("one", "two", "three"):
        assert ann.within(trace_id=trace).search("asked for often", top_k=1)["results"]
    wanted = [["confirmed", "promoted"], ["over", "expired"], ["recalled", "promoted"]]
    query = "SELECT id, change FROM knowledge_versions WHERE change IN ('promoted', 'expired') ORDER BY ALL"
    until(lambda: op.sql(query)["rows"] == wanted, "each memory ends in its way")


def forge(node: RunningNode) -> None:
    """What a node would say of memories too early, and once more; the gate refuses each."""
    facts: list[tuple[str, Fact]] = [
        ("stays", KnowledgeExpired(after=WEEK)),
        ("stays", KnowledgePromoted(cause="recalled")),
        ("over", KnowledgeExpired(after=1)),
        ("recalled", KnowledgePromoted(cause="recalled")),
    ]

    async def publish() -> None:
        ledger = await JetStreamLedger.connect(node.access)
        await ledger.append_many([NewEvent(fact, item, NODE) for item, fact in facts])
        await ledger.close()

    asyncio.run(publish())


def clock_of_a_child() -> float:
    """What the clock of a process says that inherits this one's environment."""
    said = subprocess.run([sys.executable, "-c", "import time; print(time.time())"], capture_output=True, check=True)
    return float(said.stdout)


def decided(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What a file of a replay says of the memories."""
    with duckdb.connect(str(file), read_only=True) as con:
        return {name: con.execute(query).fetchall() for name, query in ASKED.items()}


@shifted.can_shift
def test_a_rebuild_of_a_node_whose_clock_is_a_year_off_decides_alike_and_asks_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that rebuilds for the node, on its broker; it inherits the clock of who starts it."""
    with embedding_endpoint() as server:
        server.chat.says({"items": [{"type": "tool", "task": "gate", "content": "It opens at eight.", "domain": "d",
                                     "category": "exp", "message_ids": []}]}, to="<message id=")  # fmt: skip
        server.chat.says({"verdicts": []}, to="<new item=")
        with running(tmp_path / "data", env=models(server)) as node, node.client() as op:
            remember(op)
            forge(node)
            caught_up(op)
            asked, embedded = server.chat.calls, len(server.texts)
            assert asked > 0
            live = result_of(op, "verify")
            assert live["equal"]
            found = {}
            master = kept_master_key(node.data)
            assert master is not None
            for days in CLOCKS:
                with shifted.nothing_left(), monkeypatch.context() as process:
                    for name, value in shifted.by(days).items():
                        process.setenv(name, value)
                    assert_off(clock_of_a_child(), days)
                    file = tmp_path / f"{days}.duckdb"
                    rebuilt = asyncio.run(rebuild_in_own_process(node.access, file, None, master=master))
                    found[days] = (rebuilt.digest, rebuilt.refused, rebuilt.views, decided(file))
            assert (server.chat.calls, len(server.texts)) == (asked, embedded), "a replay asks no model"
    assert found[YEAR] == found[-YEAR] == found[0]
    digest, _, _, became = found[0]
    assert digest == live["live"]["digest"]
    assert [code for _, code, _ in became["refused"]] == ["illegal_state"] * 4
