"""`kledger lineage` shows each event once, with what it was for the item, and where it came from."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from projections.views.lineage.links import OF_REFERENCES
from tests.doors.scripted_node import ScriptedNode


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_the_lineage_of_an_item_has_its_sources_its_own_events_and_what_came_of_them(node: ScriptedNode) -> None:
    event: dict[str, Any] = {"event_id": "e", "entity": "knowledge", "entity_id": "k-1", "actor": "user:mei"}
    event |= {"trace_id": None, "message_id": None, "position": 8, "time": "2026-03-05T12:00:00.5Z"}
    saved = {**event, "role": "origin", "event_type": "knowledge.saved", "trace_id": "t-1", "message_id": "m-1"}
    harm = {**event, "role": "verdict", "event_type": "knowledge.rated", "verdict": "harmful", "trace_id": "t-2"}
    harm["case"] = {"task": "release 45", "reason": "broken"}
    score = {**event, "role": "verdict", "event_type": "knowledge.scored", "score": 2}
    served = {**event, "role": "use", "event_type": "recall.served", "entity": "recall", "entity_id": "recall-9"}
    edge = {**event, "event_type": "knowledge.saved", "direction": "from"}
    edges = [
        {**edge, "relation": "message", "ref": "message:m-1"},
        {**edge, "relation": "trace", "ref": "trace:t-1"},
        {**edge, "relation": "trace", "ref": "trace:t-2", "direction": "to", "event_type": "knowledge.rated"},
    ]
    events = [saved, harm, score, *({**served, "position": 10 + n} for n in range(30))]
    node.says("GET /api/lineage", {"ref": "k-1", "events": events, "edges": edges, "position": 9})
    tree = kledger("lineage", "k-1").stdout
    came, made, led = tree.index("came from (2)"), tree.index("its own events (3)"), tree.index("led to (30)")
    assert came < tree.index("message:m-1\n") < made < led
    assert came < tree.index("trace:t-1\n") < made
    for line in (
        "saved by user:mei  in trace:t-1, message:m-1",
        "rated harmful by user:mei: release 45; broken  in trace:t-2",
        "scored 2 by user:mei",
    ):
        assert made < tree.index(line) < led
        assert tree.count(line) == 1
    assert led < tree.index("recall recall-9 served by user:mei") < tree.index("and 10 more")


@pytest.mark.parametrize("bound", [{}, {"more": True}])
def test_a_lineage_that_is_not_whole_is_told_so(bound: dict[str, Any], node: ScriptedNode) -> None:
    node.says("GET /api/lineage", {"ref": "k-1", "events": [], "edges": [], "position": 9, **bound})
    assert ("there may be more" in kledger("lineage", "k-1").stdout) == bool(bound)


@pytest.mark.parametrize("ref", OF_REFERENCES)
def test_the_lineage_of_a_reference_shows_what_happened_in_it(ref: str, node: ScriptedNode) -> None:
    harm = {"event_id": "e", "entity": "knowledge", "entity_id": "k-1", "actor": "user:mei", "position": 8}
    harm |= {"trace_id": None, "message_id": None, "time": "2026-03-05T12:00:00.5Z"}
    harm |= {"role": "verdict", "event_type": "knowledge.rated", "verdict": "harmful", "case": {"reason": "broken"}}
    node.says("GET /api/lineage", {"ref": f"{ref}t-1", "events": [harm], "edges": [], "position": 9})
    tree = kledger("lineage", f"{ref}t-1").stdout
    assert "its own events" not in tree
    assert tree.index("led to (1)") < tree.index("knowledge k-1 rated harmful by user:mei: broken  at 8")
