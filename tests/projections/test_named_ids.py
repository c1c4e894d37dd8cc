"""Every trace and message that an event names is a link of it, wherever it is named; a case keeps its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kledger.contract.knowledge import Case, Source
from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    Origin,
)
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.resource import ResourceSaved
from projections.engine import batch
from projections.views.lineage import ask
from tests.projections.histories import rows, saved, stored, view_of

ELSEWHERE = Lineage(trace_id="T-header", message_id="M-header")
ORIGIN = Origin(trace_id="T-origin", message_id="M-origin")
SOURCE = Source(trace_id="T-source", message_id="M-source")
CASE = Case(task="release 44", trace_id="T-case", message_id="M-case")


@pytest.fixture(params=[0, 256], ids=["as a set", "one by one"], autouse=True)
def _each_road(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "SMALL", request.param)
        yield


def linked(log: list[NewEvent], position: int) -> set[str]:
    found = rows(view_of(stored(log)).con, f"SELECT ref FROM lineage WHERE position = {position}")
    assert len(found) == len(set(found)), "each once"
    return {ref for (ref,) in found}


def test_a_save_is_linked_to_what_its_envelope_its_origin_and_its_source_name() -> None:
    save = saved("k1", source=SOURCE, origin=ORIGIN)
    log = [NewEvent(save.fact, "k1", "agent:a", lineage=ELSEWHERE)]
    places = ("header", "origin", "source")
    assert linked(log, 1) == {f"{kind}-{place}" for kind in ("trace:T", "message:M") for place in places}


def test_what_is_named_twice_is_one_link() -> None:
    save = saved("k1", source=Source(message_id="M"), origin=Origin(message_id="M", trace_id="T"))
    assert linked([NewEvent(save.fact, "k1", "agent:a", lineage=Lineage(trace_id="T"))], 1) == {"message:M", "trace:T"}


@pytest.mark.parametrize(
    "fact", [KnowledgeRated(verdict="helpful", case=CASE), KnowledgeConfirmed(case=CASE)], ids=lambda fact: fact.name
)
def test_a_case_keeps_its_own_trace_and_message_and_is_linked_to_its_envelopes_too(
    fact: KnowledgeRated | KnowledgeConfirmed,
) -> None:
    log = [saved("k1"), NewEvent(fact, "k1", "agent:a", lineage=ELSEWHERE)]
    assert linked(log, 2) == {"trace:T-case", "trace:T-header", "message:M-case", "message:M-header"}
    kept = rows(view_of(stored(log)).con, "SELECT trace_id, message_id FROM feedback")
    assert kept == [("T-case", "M-case")]


def test_a_revision_and_a_resource_are_linked_to_all_that_they_name() -> None:
    resource = ResourceSaved(title="t", scopes=["agent:a"], owner="agent:a", origin=ORIGIN)
    log = [
        saved("k1"),
        NewEvent(KnowledgeRevised(source=SOURCE), "k1", "agent:a", lineage=ELSEWHERE),
        NewEvent(resource, "code/a", "agent:a", lineage=ELSEWHERE),
    ]
    assert linked(log, 2) == {"trace:T-header", "trace:T-source", "message:M-header", "message:M-source"}
    assert linked(log, 3) == {"trace:T-header", "trace:T-origin", "message:M-header", "message:M-origin"}


@pytest.mark.parametrize("served", ["T-case", "T-header", "T-other"])
def test_a_case_earns_credit_where_its_own_trace_or_the_one_that_states_it_was_served(served: str) -> None:
    recall = RecallServed(
        query="q", visible_scopes=["public"], items=[ServedItem(id="k1", version=1, relevance=1.0)], view_position=1
    )
    log = [
        saved("k1"),
        NewEvent(recall, "recall-1", "agent:a", lineage=Lineage(trace_id=served)),
        NewEvent(KnowledgeRated(verdict="helpful", case=CASE), "k1", "agent:a", lineage=ELSEWHERE),
    ]
    credit = "not_served" if served == "T-other" else "served"
    assert rows(view_of(stored(log)).con, "SELECT credit FROM feedback") == [(credit,)]


def test_a_link_says_where_its_event_names_it() -> None:
    save = saved("k1", source=SOURCE, origin=Origin(message_id="M-source"))
    cursor = view_of(stored([NewEvent(save.fact, "k1", "agent:a", lineage=ELSEWHERE)])).con
    _, edges, _ = ask.links(cursor, "default", Caller(), "k1") or ([], [], False)
    assert {edge["ref"]: edge["stated_in"] for edge in edges} == {
        "trace:T-header": ["envelope"],
        "message:M-header": ["envelope"],
        "trace:T-source": ["source"],
        "message:M-source": ["origin", "source"],
    }
    _, (edge,), _ = ask.links(cursor, "default", Caller(), "trace:T-source") or ([], [], False)
    assert (edge["ref"], edge["stated_in"]) == ("k1", ["source"])


def test_versions_keep_what_the_save_says_of_the_whole_item() -> None:
    con = view_of(
        stored(
            [
                saved("k1", origin=ORIGIN),
                NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a"),
                NewEvent(KnowledgeRetired(), "k1", "agent:a"),
            ]
        )
    ).con
    assert rows(con, "SELECT DISTINCT origin->>'message_id' FROM knowledge_versions") == [("M-origin",)]
    assert rows(con, "SELECT origin->>'trace_id' FROM knowledge") == [("T-origin",)]


def test_a_save_that_states_no_origin_is_written_as_version_2() -> None:
    fact = saved("k1").fact
    assert isinstance(fact, KnowledgeSaved)
    assert (fact.stated_version(), fact.model_copy(update={"origin": ORIGIN}).stated_version()) == (2, 3)
