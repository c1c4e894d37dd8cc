"""A node whose parts do not work says so, with the reason, and is well again when they are."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.errors import BrokerUnavailable
from tests.journeys.running_node import RunningNode, assert_found, caught_up, items, running, until


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running(tmp_path_factory.mktemp("health") / "data") as started:
        with started.client() as ledger:
            ledger.save_many(items(50))
            caught_up(ledger)
        yield started


def health(node: RunningNode) -> tuple[int, dict[str, Any]]:
    answer = httpx.get(f"{node.url}/health", timeout=30)
    return answer.status_code, answer.json()


def test_a_broker_that_hangs_makes_the_node_unhealthy_until_it_goes_on(node: RunningNode) -> None:
    assert health(node) == (200, {"status": "healthy", "reasons": []})
    os.kill(node.broker, signal.SIGSTOP)
    try:
        with node.client(retries=0) as ledger, ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(
                ledger.save, "Wait", "for the broker", ["tool"], id="waited", scopes=["public"], idempotency_key="w"
            )
            # what is known can still be asked
            assert ledger.get("part-00001")["version"] == 1
            assert_found(ledger, [1])
            status, told = health(node)
            assert (status, told["status"]) == (503, "unhealthy")
            assert any("broker" in reason for reason in told["reasons"]), told
            assert httpx.get(f"{node.url}/health/live").status_code == 200
            with pytest.raises(BrokerUnavailable):
                waiting.result()
    finally:
        os.kill(node.broker, signal.SIGCONT)
    until(lambda: health(node)[0] == 200, "the node is healthy again")
    with node.client() as ledger:
        saved = ledger.save("Wait", "for the broker", ["tool"], id="waited", scopes=["public"], idempotency_key="w")
        assert ledger.get("waited")["position"] == saved["position"]
        assert ledger.sql("SELECT count(*) FROM events WHERE entity_id = 'waited'")["rows"] == [[1]]
        caught_up(ledger)


def test_a_vector_process_that_hangs_is_a_lag_that_health_tells(node: RunningNode) -> None:
    os.kill(node.vectors, signal.SIGSTOP)
    try:
        with node.client() as ledger:
            saved = ledger.save("Say nothing", "for a while", ["tool"], scopes=["public"])
            views = {view["name"]: view for view in ledger.seeing(saved["position"]).status()["views"]}
            until(
                lambda: (
                    {view["name"]: view["lag_events"] for view in ledger.status()["views"]}
                    == {"duckdb": 0, "vectors": 1}
                ),
                "the vectors are behind, the rest is not",
            )
            first = {view["name"]: view["lag_seconds"] for view in ledger.status()["views"]}["vectors"]
            until(
                lambda: {view["name"]: view["lag_seconds"] for view in ledger.status()["views"]}["vectors"] > first,
                "the lag grows",
            )
            assert set(views) == {"duckdb", "vectors"}
    finally:
        os.kill(node.vectors, signal.SIGCONT)
    with node.client() as ledger:
        caught_up(ledger)


def test_a_log_that_was_cut_is_never_folded_past_and_never_healthy(tmp_path: Path) -> None:
    """The view says position 20, the log begins anew: whatever comes now must not vanish behind it."""
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        ledger.save_many(items(20))
        caught_up(ledger)
    shutil.rmtree(data / "broker" / "jetstream")
    with running(data) as again, again.client() as ledger:
        until(lambda: health(again)[0] == 503, "the node is not healthy")
        _, told = health(again)
        assert any("ends at position 0" in reason for reason in told["reasons"]), told
