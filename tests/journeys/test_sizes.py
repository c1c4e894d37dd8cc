"""An operator sees how many bytes there are of what, and sets whose reads are recorded."""

from __future__ import annotations

from pathlib import Path

import httpx

from tests.journeys.running_node import caught_up, head, running


def test_the_bytes_of_each_part_and_of_what_reading_recorded_are_measured(tmp_path: Path) -> None:
    (tmp_path / "data" / "snapshots").mkdir(parents=True)
    with (tmp_path / "data" / "snapshots" / "holes").open("wb") as file:  # as the files of the vectors are
        file.truncate(2**30)
    with (
        running(tmp_path / "data", env={"KLEDGER_RECORD_RECALLS": "agents"}) as node,
        node.client() as ledger,
        httpx.Client(base_url=node.url, timeout=30) as http,
    ):
        ledger.save("fill the inkwell", "with ink", ["tool"], scopes=["public"])
        before = head(ledger)
        ledger.search("inkwell")
        assert head(ledger) == before
        ledger.acting_as(agent="scribe").search("inkwell")
        assert head(ledger) == before + 1
        caught_up(ledger)

        def seen() -> dict[str, float]:
            lines = [line.rpartition(" ") for line in http.get("/metrics").text.splitlines()]
            return {name: float(value) for name, _, value in lines if name.startswith("kledger_") and "bytes" in name}

        told = ledger.status()["bytes"]
        assert set(told["parts"]) == {
            *("log", "archive", "views", "vectors", "snapshots", "keys", "chain", "sessions", "embeddings", "broker"),
            "other",
        }
        assert min(told["parts"][name] for name in ("log", "views", "vectors", "keys", "chain", "broker")) > 0
        found = seen()
        assert max(told["parts"]["snapshots"], found['kledger_bytes{part="snapshots"}']) < 2**20
        assert found['kledger_bytes{part="views"}'] > 0
        assert set(told["events"]) <= {name.partition('"')[2].rstrip('"}') for name in found if "event" in name}
