"""A node that says it is ready answers with all that its log held, also where its views are made anew first."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.journeys.running_node import assert_found, caught_up, items, running

MANY = 2_000


def test_a_node_without_its_views_and_vectors_is_ready_once_it_has_them_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data) as node, node.client() as ledger:
        ledger.save_many(items(MANY))
        caught_up(ledger)
    for lost in ("views", "vectors"):
        shutil.rmtree(data / lost)
    with running(data) as node, node.client() as somebody:  # who has written nothing here
        assert somebody.list(limit=1)["total"] == MANY
        assert_found(somebody, [0, MANY - 1])
        assert somebody.search("spare", top_k=1)["degraded"] == []
        assert min(view["position"] for view in somebody.status()["views"]) >= MANY
