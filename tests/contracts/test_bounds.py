"""What a request may say, an event may say, and the other way round: no interface has a limit of its own."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel

from kledger.contract.knowledge import AclEntry, Case, Source
from kledger.contract.memory import Memory
from kledger.contract.seal_mark import MARK
from kledger.contract.sessions import MOST_CONTENT
from kledger.requests import knowledge as requests
from kledger.requests import memory as memory_requests
from kledger.requests import models as model_requests
from kledger.requests import resources as resource_requests
from kledger.requests import slims as slim_request
from kledger.requests.recall import RecallRequest
from ledger.events import FACTS
from ledger.events.conflict import ConflictResolved
from ledger.events.extraction import ExtractionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import KnowledgeReverted, KnowledgeRevised, KnowledgeSaved, KnowledgeShared
from ledger.events.profile import ProfileReplaced
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.resource import ResourceSaved
from ledger.events.scope_type import ScopeTypeRegistered
from ledger.events.slim import SlimRequested
from ledger.vocabulary.old_versions import EARLIER
from producers.http.parameters import SearchQuery
from producers.operations.recall.search import searched
from tests.contracts.shapes import of, parts, shape

PAIRS: list[tuple[type[BaseModel], type[BaseModel], set[str]]] = [
    # A save's tags, scopes and owner may be left out; they are stated in the event all the same.
    (requests.SaveRequest, KnowledgeSaved, set()),
    (requests.EvalBody, KnowledgeSaved, set()),
    # Tags may be words, as those of a memory are: they become an object of names without values.
    (requests.UpdateRequest, KnowledgeRevised, {"tags"}),
    (requests.ShareRequest, KnowledgeShared, set()),
    (requests.MemoryBody, Memory, set()),
    # Tags of a memory may be an object, which is then the item's.
    (memory_requests.RememberRequest, Memory, {"tags"}),
    (requests.AclEntryBody, AclEntry, set()),
    (requests.SourceBody, Source, set()),
    (requests.CaseBody, Case, set()),
    (requests.ScopeTypeRequest, ScopeTypeRegistered, set()),
    (requests.ContentRequest, ProfileReplaced, set()),
    (requests.FocusRequest, GoalFocused, set()),
    # What is a secret at the interface is sealed in the event.
    (resource_requests.ResourceRequest, ResourceSaved, {"secure_body"}),
    # A message without an id gets one, and is an object in the event.
    (model_requests.ExtractRequest, ExtractionRequested, {"messages"}),
    (model_requests.ResolveRequest, ConflictResolved, set()),
    (model_requests.RevertRequest, KnowledgeReverted, set()),
    (slim_request.SlimRequest, SlimRequested, set()),
]


@pytest.mark.parametrize(("request_model", "fact", "apart"), PAIRS, ids=lambda one: getattr(one, "__name__", ""))
def test_each_field_of_a_request_has_the_limits_of_the_event_that_it_becomes(
    request_model: type[BaseModel], fact: type[BaseModel], apart: set[str]
) -> None:
    shared = (request_model.model_fields.keys() & fact.model_fields.keys()) - apart
    assert shared, "they have a field in common"
    for name in sorted(shared):
        ours, theirs = request_model.model_fields[name], fact.model_fields[name]
        assert shape(*of(ours)) == shape(*of(theirs)), name


def test_what_is_searched_of_a_message_fits_into_the_record_of_what_it_served() -> None:
    longest = SearchQuery.model_json_schema()["properties"]["q"]["maxLength"]
    assert longest == RecallRequest.model_json_schema()["properties"]["message"]["maxLength"] == MOST_CONTENT
    kept = RecallServed.model_json_schema()["properties"]["query"]["maxLength"]
    for message in ("word " * (longest // 5), "字" * longest, "what? " * (longest // 6), "error\n" * (longest // 6)):
        text, told = searched(message)
        assert 0 < len(text) <= kept
        assert told == {"searched": len(text)}
    assert searched("where?" * 600) == ("where?" * 600, {})


@pytest.mark.parametrize("fact", [KnowledgeSaved, ResourceSaved])
def test_whatever_may_be_kept_under_an_id_may_be_served_under_it(fact: Any) -> None:
    longest = "王" * 200
    assert fact.fault_of_id(longest) is None
    assert fact.fault_of_id(longest + "王") is not None
    assert fact.fault_of_id(f"{MARK}x") is not None, "which no later event could name"
    assert ServedItem(id=longest, version=1, relevance=0.0).id == longest


@pytest.mark.parametrize("fact", [*FACTS.values(), *EARLIER.values()], ids=lambda fact: fact.name)
def test_every_list_that_an_event_states_has_an_end(fact: type[BaseModel]) -> None:
    endless = [
        place for place, kind, constraints in parts(fact) if kind == "list" and "max_length" not in str(constraints)
    ]
    assert endless == []


@pytest.mark.parametrize("fact", FACTS.values(), ids=lambda fact: fact.name)
def test_every_object_that_an_event_states_is_a_bounded_document_and_every_fraction_a_number(
    fact: type[BaseModel],
) -> None:
    for place, kind, constraints in parts(fact):
        if kind.startswith("dict"):
            assert any("check_document" in one for one in constraints), place
        if kind == str(float):
            assert any("without_sign_of_zero" in one for one in constraints), place
            assert any("allow_inf_nan=False" in one for one in constraints), place


STATED = {"content", "feedback", "description", "event", "outcome", "trigger", "steps"}
"""Fields with the words that an item, a goal or a request to a model is there for; a case has its words elsewhere."""


@pytest.mark.parametrize("fact", FACTS.values(), ids=lambda fact: fact.name)
def test_what_an_event_is_there_to_say_is_no_blank_text(fact: type[BaseModel]) -> None:
    blank = [
        place
        for place, kind, constraints in parts(fact)
        if kind == str(str)
        and place.split(".")[-1].removesuffix("[]") in STATED
        and "case" not in place.split(".")
        and "says_something" not in str(constraints)
    ]
    assert blank == []


def test_a_word_out_of_a_list_is_told_apart_from_another_list() -> None:
    assert shape(Literal["a"]) != shape(Literal["b"])
