"""A node keeps the detail of recalls for as long as it is set to, in each rebuild as well; a replay has all of it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import orjson

from tests.journeys.running_node import caught_up, result_of, running

DAYS = "KLEDGER_RECALL_DETAIL_DAYS"


def days_of(file: Path) -> list[tuple[int | None]]:
    with duckdb.connect(str(file), read_only=True) as con:
        return con.execute("SELECT days FROM recall_retention").fetchall()


def live_file(data: Path) -> Path:
    return data / "views" / (data / "views" / "current").read_text().strip()


def test_a_node_that_is_set_anew_makes_its_views_anew_and_a_replay_has_all_detail(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        ledger.save("fill the inkwell", "with ink", ["tool"], scopes=["public"])
        recall = ledger.search("inkwell")["recall_id"]
        caught_up(ledger)
    assert recall is not None
    assert days_of(live_file(data)) == [(None,)]
    before = live_file(data).name
    for _ in range(2):
        with running(data, env={DAYS: "30"}) as node, node.client() as ledger:
            assert ledger.recalls.get(recall)["results"][0]["content"] == "with ink"
            assert result_of(ledger, "verify")["equal"]
            rebuilt = result_of(ledger, "rebuild")
            replay = result_of(ledger, "replay", into=tmp_path / f"{node.process.pid}.duckdb")
            assert rebuilt["equal"]
            caught_up(ledger)
        certificates = [orjson.loads(Path(each["certificate"]).read_bytes()) for each in (rebuilt, replay)]
        assert [each.get("recall_days") for each in certificates] == [30, None]
        assert days_of(live_file(data)) == [(30,)]
        assert days_of(Path(replay["into"])) == [(None,)]
        assert live_file(data).name != before
