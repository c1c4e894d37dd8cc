"""An event id is its actor's: another who uses it takes nothing, and adds nothing to where the event came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from projections.engine import batch
from projections.views.lineage.ask import kept_events, links
from tests.projections.histories import rows, saved, state, stored, view_of

OPERATOR = Caller()


@pytest.fixture(params=["judged by the models", "parsed by SQL"], autouse=True)
def _both_roads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 256 if request.param == "judged by the models" else 0)


def by(actor: str, item: str, org: str = "default") -> NewEvent:
    """An item that its actor saves, under the one id of this page; it names a trace and a cause of its own."""
    said = saved(item)
    assert isinstance(said.fact, KnowledgeSaved)
    fact = said.fact.model_copy(update={"owner": actor, "scopes": ["public"]})
    lineage = Lineage(trace_id=f"trace of {actor}", causation_id=f"cause of {actor}")
    return replace(said, fact=fact, actor=actor, org=org, id="the-one-id", lineage=lineage)


@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3)])
def test_an_id_that_another_used_first_is_still_free_and_ones_own_is_not(cuts: Sequence[int]) -> None:
    log = stored(
        [
            by("agent:mallory", "claim"),
            by("user:bob", "bobs"),
            by("user:bob", "bobs-second"),
            by("agent:mallory", "claim-second"),
            by("user:bob", "bobs", org="elsewhere"),
        ]
    )
    bench = view_of(log, cuts)
    assert rows(bench.con, "SELECT position, code FROM refused_events ORDER BY position") == [
        (3, "duplicate_event"),
        (4, "duplicate_event"),
    ]
    assert rows(bench.con, "SELECT org, id, owner FROM knowledge_state ORDER BY created_position") == [
        ("default", "claim", "agent:mallory"),
        ("default", "bobs", "user:bob"),
        ("elsewhere", "bobs", "user:bob"),
    ]
    assert state(bench) == state(view_of(log, (2, 4)))


def test_where_an_event_came_from_is_not_told_by_anothers_event_of_the_same_id() -> None:
    con = view_of(stored([by("agent:mallory", "claim"), by("user:bob", "bobs")])).con
    found = links(con, "default", OPERATOR, "bobs")
    assert found is not None
    events, edges, _ = found
    assert {"trace:trace of user:bob", "event:cause of user:bob"} == {
        link["ref"] for link in edges if link["relation"] in ("trace", "caused_by")
    }
    assert {told["entity_id"] for told in (*events, *edges)} == {"bobs"}


def test_a_retry_finds_its_own_events_and_nobody_elses() -> None:
    con = view_of(stored([by("agent:mallory", "claim")])).con
    assert kept_events(con, "default", ["user:bob"], ["the-one-id"]) == {}
    assert kept_events(con, "elsewhere", ["agent:mallory"], ["the-one-id"]) == {}
    assert kept_events(con, "default", ["agent:mallory"], ["the-one-id"])["the-one-id"].entity_id == "claim"
