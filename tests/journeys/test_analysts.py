"""Analysts in processes of their own, with any DuckDB: they read while the node works, and change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kledger import LedgerClient
from kledger.contract.errors import IllegalQuery, InvalidPayload
from tests.journeys.running_node import (
    ROOT,
    Importing,
    RunningNode,
    caught_up,
    head,
    items,
    result_of,
    until,
)
from tests.patience import PATIENCE

CLIENT = ROOT / "tests" / "analysts" / "quack_client.py"

# Where it is said ("server": the text goes over the wire; "client": through the attached catalog), and what.
FORBIDDEN = {
    "INSERT": ("server", "INSERT INTO refused_events SELECT * FROM refused_events"),
    "INSERT through the catalog": ("client", "INSERT INTO kl.checkpoints VALUES ('x', 1, 1, 1)"),
    "UPDATE": ("server", "UPDATE knowledge_versions SET content = 'gone'"),
    "UPDATE through the catalog": ("client", "UPDATE kl.knowledge_versions SET content = 'gone'"),
    "DELETE": ("server", "DELETE FROM events"),
    "DELETE through the catalog": ("client", "DELETE FROM kl.events"),
    "DROP": ("server", "DROP TABLE events"),
    "DROP through the catalog": ("client", "DROP TABLE kl.events"),
    "COPY TO": ("server", "COPY events TO '{directory}/stolen.csv'"),
    "ATTACH": ("server", "ATTACH '{directory}/other.duckdb' AS other"),
    "ATTACH of the file itself": ("server", "ATTACH '{view}' AS other"),
    "INSTALL": ("server", "INSTALL spatial"),
    "LOAD": ("server", "LOAD spatial"),
    "a file of the host": ("server", "FROM read_text('{secret}')"),
    "a file of the host by its name": ("server", "FROM '{secret}'"),
    "the broker's credentials": ("server", "FROM read_json('{data}/broker/credentials.json')"),
    "SET": ("server", "SET threads = 1"),
    "SET GLOBAL": ("server", "SET GLOBAL enable_external_access = true"),
    "the settings": ("server", "FROM duckdb_settings()"),
    "CHECKPOINT": ("server", "CHECKPOINT"),
    "the node's own tables": ("server", "INSERT INTO temp.raw VALUES (1)"),
}


@contextmanager
def analyst(node: RunningNode, **orders: Any) -> Iterator[subprocess.Popen[str]]:
    """An analyst's process, attached with the statement that `kledger sql` prints, that follows `orders`."""
    with node.client() as ledger:
        orders["attach"] = ledger.attach()["statement"]
    process = subprocess.Popen(
        [sys.executable, str(CLIENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(orders) + "\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def answers(node: RunningNode, statements: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What each statement got."""
    with analyst(node, mode="statements", statements=statements) as process:
        assert process.stdout is not None
        return [json.loads(line) for line in process.stdout]


def test_an_analyst_counts_while_an_import_runs(shared_node: RunningNode, ledger: LedgerClient) -> None:
    caught_up(ledger)
    before, refused = events_and_refused(ledger)
    payloads = items(1_500, "counted")
    with analyst(shared_node, mode="count", until=before + len(payloads)) as process:
        assert process.stdout is not None
        counts = [json.loads(process.stdout.readline())]  # attached, and reading
        for part in (payloads[:750], payloads[750:]):
            importing = Importing(shared_node.url, part, chunk=50).start()
            counts.append(json.loads(process.stdout.readline()))  # it reads what the import has written so far
            importing.end()
            assert importing.error is None
        counts += [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE) == 0
    assert counts[0][0] == before
    assert counts[-1][0] == before + len(payloads)
    # every answer was a whole state: as many events as the last position says, but for those refused before
    assert all(position == count + refused for count, position in counts if count > before)
    assert counts == sorted(counts)


def events_and_refused(ledger: LedgerClient) -> tuple[int, int]:
    """How many events count at present, and how many do not."""
    ((events, refused),) = ledger.sql("SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM refused_events)")[
        "rows"
    ]
    return int(events), int(refused)


def test_an_analyst_can_change_and_reach_nothing(
    shared_node: RunningNode, ledger: LedgerClient, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("host-secret\n")
    pointer = shared_node.data / "views" / "current"
    fill = {
        "directory": tmp_path,
        "secret": secret,
        "data": shared_node.data,
        "view": pointer.parent / pointer.read_text().strip(),
    }
    before = result_of(ledger, "verify")
    statements = [(where, sql.format(**fill)) for where, sql in FORBIDDEN.values()]
    told = answers(shared_node, [*statements, ("client", "SELECT count(*) FROM kl.events")])
    assert len(told) == len(statements) + 1, told
    for what, answer in zip(FORBIDDEN, told, strict=False):
        assert "error" in answer, f"{what}: {answer}"
        assert "host-secret" not in str(answer)
    assert told[-1] == {"rows": [[events_and_refused(ledger)[0]]]}
    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]
    after = result_of(ledger, "verify")
    assert (after["equal"], after["live"]["digest"]) == (True, before["live"]["digest"])


def test_the_views_say_what_they_are(shared_node: RunningNode, ledger: LedgerClient) -> None:
    ledger.acting_as(user="ana").within(trace_id="trace-analyst").save(
        "Dust the globe", "用干布。", ["tool"], id="globe", scopes=["public"]
    )
    caught_up(ledger)
    told = answers(
        shared_node,
        [
            ("server", "SELECT content FROM knowledge WHERE id = 'globe'"),
            ("client", "SELECT content FROM kl.knowledge WHERE id = 'globe'"),
            ("server", "SELECT DISTINCT entity_id FROM lineage_of('trace:trace-analyst')"),
            ("server", f"SELECT content FROM knowledge_as_of({head(ledger)}) WHERE id = 'globe'"),
            ("server", "SELECT position FROM health()"),
            ("server", "SELECT count(*) FROM duckdb_tables() WHERE comment IS NULL AND table_name = 'events'"),
        ],
    )
    assert [answer.get("rows", answer) for answer in told] == [
        [["用干布。"]],
        [["用干布。"]],
        [["globe"]],
        [["用干布。"]],
        [[head(ledger)]],
        [[0]],
    ]


def test_after_a_rebuild_an_analyst_attaches_again_at_the_same_address(
    shared_node: RunningNode, ledger: LedgerClient
) -> None:
    before = ledger.attach()["statement"]
    assert result_of(ledger, "rebuild")["swapped"] is True
    assert ledger.attach()["statement"] == before
    assert answers(shared_node, [("client", "SELECT count(*) FROM kl.events")]) == [
        {"rows": [[events_and_refused(ledger)[0]]]}
    ]


def test_a_long_question_holds_up_neither_the_fold_nor_a_snapshot(
    shared_node: RunningNode, ledger: LedgerClient
) -> None:
    slow = "FROM kl.query('SELECT max(hash(r.range)) FROM checkpoints, range(400000000) r')"
    with analyst(shared_node, mode="statements", statements=[("client", "SELECT 1"), ("client", slow)]) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"rows": [[1]]}
        for number in range(5):
            saved = ledger.save(f"Wind clock {number}", "Daily.", ["plan"], scopes=["public"])
            assert ledger.get(saved["id"])["version"] == 1
            told = result_of(ledger, "snapshot")
            assert told["position"] >= saved["position"]
            reader = (
                "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).sql(sys.argv[2]).fetchone()[0])"
            )
            ran = subprocess.run(
                [sys.executable, "-I", "-c", reader, told["file"], "SELECT max(position) FROM events"],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert ran.stdout.strip() == str(told["position"]), ran.stderr
    until(lambda: ledger.status()["healthy"], "all is well")


@pytest.mark.parametrize("query", ["SELECT 1; SELECT 2", "DELETE FROM events", "FROM read_text('/etc/passwd')", ""])
def test_the_operators_own_queries_are_guarded_as_well(ledger: LedgerClient, query: str) -> None:
    with pytest.raises((IllegalQuery, InvalidPayload)):
        ledger.sql(query)
