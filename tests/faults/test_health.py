"""A node whose parts do not work says so, with the reason, and is well again when they are."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from kledger.contract.errors import BrokerUnavailable
from tests.journeys.running_node import RunningNode, assert_found, caught_up, items, until
from tests.patience import PATIENCE


def health(node: RunningNode) -> tuple[int, dict[str, Any]]:
    answer = httpx.get(f"{node.url}/health", timeout=30)
    return answer.status_code, answer.json()


def test_a_broker_that_hangs_makes_the_node_unhealthy_until_it_goes_on(node: RunningNode) -> None:
    with node.client() as ledger:
        ledger.save_many(items(50, "well"))
        caught_up(ledger)
    assert health(node) == (200, {"status": "healthy", "reasons": []})
    os.kill(node.broker, signal.SIGSTOP)
    try:
        with node.client(retries=0) as ledger, ThreadPoolExecutor(1) as beside:
            waiting = beside.submit(
                ledger.save, "Wait", "for the broker", ["tool"], id="waited", scopes=["public"], idempotency_key="w"
            )
            # what is known can still be asked
            assert ledger.get("well-00001")["version"] == 1
            assert_found(ledger, [1], "well")
            status, told = health(node)
            assert (status, told["status"]) == (503, "unhealthy")
            assert any("broker" in reason for reason in told["reasons"]), told
            assert httpx.get(f"{node.url}/health/live", timeout=PATIENCE).status_code == 200
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
