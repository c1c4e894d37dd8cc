"""Do the published schemas tell a foreign client the truth: what they admit the ledger reads, and no less?"""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema import Draft202012Validator

from kledger.contract.errors import LedgerError
from ledger.event import Fact
from ledger.events import FACTS
from ledger.vocabulary.asyncapi import asyncapi_document
from ledger.vocabulary.examples import EXAMPLES
from ledger.vocabulary.old_versions import EARLIER
from ledger.vocabulary.schemas import event_schema, form_name, forms
from ledger.wire.envelope import decode_envelope, decode_fact, encode
from ledger.wire.subjects import event_subject
from ledger.wire.upcasts import UPCASTS
from tests.house.project import ROOT

FORMS = {form_name(fact, version): (fact, version) for fact, version in forms()}
GOLDEN = sorted((ROOT / "tests" / "golden").rglob("*.json"))


def validator(form: str) -> Draft202012Validator:
    return Draft202012Validator(event_schema(*FORMS[form]))


def example(name: str) -> Any:
    return orjson.loads(encode(EXAMPLES[name]))


def read(event: object) -> Fact:
    """As the gate reads it: raises when it does not fit."""
    return decode_fact(decode_envelope(orjson.dumps(event)))


@pytest.mark.parametrize("form", FORMS)
def test_a_schema_is_a_schema(form: str) -> None:
    Draft202012Validator.check_schema(event_schema(*FORMS[form]))


@pytest.mark.parametrize("name", FACTS)
def test_every_event_has_an_example_that_its_schema_admits(name: str) -> None:
    fact = FACTS[name]
    validator(form_name(fact, fact.version)).validate(example(name))
    assert type(read(example(name))) is fact


def test_there_are_golden_samples() -> None:
    assert GOLDEN, "tests/golden holds one sample a name and version"


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_golden_sample_fits_the_schema_that_it_names(path: Path) -> None:
    event = orjson.loads(path.read_bytes())
    name, version = event["dataschema"].removeprefix("urn:kledger:").split(":")
    validator(form_name(FACTS[name], int(version))).validate(event)


def test_every_version_that_is_upcast_has_its_earlier_form_described() -> None:
    assert EARLIER.keys() == UPCASTS.keys()


MALFORMED: dict[str, tuple[str, dict[str, Any]]] = {
    "no_id": ("knowledge.saved", {"id": None}),
    "another_type": ("knowledge.saved", {"type": "knowledge.rated"}),
    "another_dataschema": ("knowledge.saved", {"dataschema": "urn:kledger:knowledge.saved:99"}),
    "a_time_without_an_offset": ("knowledge.saved", {"time": "2026-03-05T12:00:00"}),
    "an_actor_of_no_kind": ("knowledge.saved", {"actor": "nobody"}),
    "an_actor_that_ends_in_a_blank": ("knowledge.saved", {"actor": "user:ann "}),
    "data_that_is_a_list": ("knowledge.saved", {"data": []}),
    "no_types": ("knowledge.saved", {"data.types": []}),
    "a_type_in_capitals": ("knowledge.saved", {"data.types": ["Tool"]}),
    "a_score_that_is_text": ("knowledge.saved", {"data.score": "3"}),
    "a_score_of_six": ("knowledge.scored", {"data.score": 6}),
    "a_scope_of_no_kind": ("knowledge.saved", {"data.scopes": ["everybody"]}),
    "an_owner_that_is_public": ("knowledge.saved", {"data.owner": "public"}),
    "no_content": ("knowledge.saved", {"data.content": ""}),
    "a_revision_that_says_nothing": ("knowledge.revised", {"data": {"reason": "none"}}),
    "a_verdict_that_is_unknown": ("knowledge.rated", {"data.verdict": "meh"}),
    "a_case_that_is_text": ("knowledge.rated", {"data.case": "it helped"}),
    "a_memory_that_is_unknown": ("profile.created", {"data.memory_type": "dreams"}),
    "a_patch_that_is_a_list": ("profile.patched", {"data.patch": []}),
    "an_item_without_its_version": ("recall.served", {"data.items": [{"id": "a", "relevance": 1.0}]}),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_what_is_malformed_is_refused_by_the_schema_and_by_the_ledger(case: str) -> None:
    name, changes = MALFORMED[case]
    event = changed(example(name), changes)
    fact = FACTS[name]
    assert not validator(form_name(fact, fact.version)).is_valid(event)
    if case != "another_type":  # well formed as such: the name of its schema tells the difference
        with pytest.raises(LedgerError):
            read(event)


def changed(event: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The event with some fields stated otherwise; None takes a field away."""
    made = copy.deepcopy(event)
    for path, value in changes.items():
        *above, last = path.split(".")
        place = made
        for name in above:
            place = place[name]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return made


def test_an_unknown_field_is_no_fault() -> None:
    event = changed(example("knowledge.saved"), {"data.from_the_future": 1, "futureattribute": "x"})
    validator("knowledge.saved.v5").validate(event)
    read(event)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The AsyncAPI document; to make it takes half a second."""
    return asyncapi_document()


def test_the_asyncapi_document_is_whole(document: dict[str, Any]) -> None:
    for reference in references(document):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in found, reference
            found = found[part]
    assert document["components"]["messages"].keys() == {*FORMS, "acknowledgement"}


def references(part: object) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(references, part.values()))
    return set().union(*map(references, part)) if isinstance(part, list) else set()


@pytest.mark.parametrize("name", FACTS)
def test_a_channel_leads_to_the_subject_that_the_ledger_writes(name: str, document: dict[str, Any]) -> None:
    fact, event = FACTS[name], EXAMPLES[name]
    address = document["channels"][name]["address"]
    pattern = re.sub(r"\\{\w+\\}", r"[A-Za-z0-9_=-]+", re.escape(address))
    assert re.fullmatch(pattern, event_subject(event.org, fact.entity(), event.entity_id, fact.verb(), event.actor))
