"""An event on the wire: CloudEvents 1.0 in JSON, read back as written, and what does not fit is named."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import (
    BadJson,
    InvalidPayload,
    LedgerError,
    PayloadTooLarge,
    UnknownEvent,
    UnsupportedVersion,
)
from ledger.event import Fact, Lineage, NewEvent
from ledger.events import FACTS
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.resource import ResourceSaved
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.vault import DataKey, new_secret
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.envelope import MAX_BODY_BYTES, decode_envelope, decode_fact, encode
from ledger.wire.upcasts import UPCASTS, known_versions, upcast

AFTER_THE_LAST = f"urn:kledger:knowledge.saved:{FACTS['knowledge.saved'].version + 1}"


def saved(**about: Any) -> NewEvent:
    fact = KnowledgeSaved(types=["tool"], task="任务", content="内容 🙂", scopes=["public"], owner="user:ada")
    return NewEvent(fact, entity_id="item/1", actor="user:ada", **about)


def changed(**attributes: Any) -> bytes:
    """The body of an event with some attributes set, or removed where they are None."""
    document = orjson.loads(encode(saved())) | attributes
    # The standard library writes what others may send and orjson would not: integers of any size.
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


@pytest.mark.parametrize("name", FACTS)
def test_every_event_is_read_back_as_it_was_written(name: str) -> None:
    event = EXAMPLES[name]
    envelope = decode_envelope(encode(event))
    assert decode_fact(envelope) == event.fact
    assert envelope.subject == f"{event.fact.entity()}/{event.entity_id}"
    assert (envelope.id, envelope.time, envelope.actor) == (event.id, event.time, event.actor)


def test_the_body_is_a_cloud_event_with_lineage() -> None:
    lineage = Lineage("trace", "message", "cause", "correlation", "00-ab-cd-01")
    moment = datetime(2026, 3, 5, 12, 0, 0, 1, tzinfo=UTC)
    document = orjson.loads(encode(saved(lineage=lineage, id="e-1", time=moment)))
    data = document.pop("data")
    assert document == {
        "specversion": "1.0",
        "id": "e-1",
        "type": "knowledge.saved",
        "source": "urn:kledger",
        "subject": "knowledge/item/1",
        "time": "2026-03-05T12:00:00.000001+00:00",
        "datacontenttype": "application/json",
        "dataschema": "urn:kledger:knowledge.saved:2",
        "actor": "user:ada",
        "traceparent": "00-ab-cd-01",
        "traceid": "trace",
        "messageid": "message",
        "causationid": "cause",
        "correlationid": "correlation",
    }
    assert data["content"] == "内容 🙂"


def test_lineage_that_is_not_known_is_left_out() -> None:
    assert not {"traceid", "messageid", "causationid", "correlationid", "traceparent"} & set(
        orjson.loads(encode(saved()))
    )


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"nan", b"{'a':1}", b'{"a":1}}'])
def test_what_is_no_json_is_bad_json(body: bytes) -> None:
    with pytest.raises(BadJson, match="not valid JSON"):
        decode_envelope(body)


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"'])
def test_json_that_is_no_object_is_an_invalid_payload(body: bytes) -> None:
    with pytest.raises(InvalidPayload, match="not a JSON object"):
        decode_envelope(body)


@pytest.mark.parametrize(
    ("attributes", "field"),
    [
        ({"id": None}, "id"),
        ({"id": ""}, "id"),
        ({"id": "x" * 513}, "id"),
        ({"specversion": "0.3"}, "specversion"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-03-05T12:00:00"}, "time"),
        ({"actor": "nobody"}, "actor"),
        ({"actor": "public"}, "actor"),
        ({"dataschema": "urn:other:x:1"}, "dataschema"),
        ({"datacontenttype": "text/xml"}, "datacontenttype"),
        ({"subject": None}, "subject"),
        ({"data": []}, "data"),
        ({"data": None}, "data"),
        ({"traceid": 7}, "traceid"),
    ],
)
def test_a_wrong_attribute_is_named(attributes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPayload, match=field) as refusal:
        decode_envelope(changed(**attributes))
    errors = refusal.value.details["errors"]
    assert isinstance(errors, list)
    assert any(fault["field"].startswith(field) for fault in errors)


def test_attributes_of_a_newer_writer_are_ignored() -> None:
    assert decode_envelope(changed(newer="attribute")).id
    data = orjson.loads(encode(saved()))["data"] | {"newer": "field"}
    assert isinstance(decode_fact(decode_envelope(changed(data=data))), KnowledgeSaved)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ({"type": "knowledge.rated"}, InvalidPayload),
        ({"type": "x.y", "dataschema": "urn:kledger:x.y:1"}, UnknownEvent),
        ({"dataschema": AFTER_THE_LAST}, UnsupportedVersion),
        ({"dataschema": "urn:kledger:knowledge.saved:999999999"}, UnsupportedVersion),
        ({"data": {}}, InvalidPayload),
        ({"data": {"types": ["tool"], "task": 1, "content": "c", "scopes": [], "owner": "x"}}, InvalidPayload),
    ],
)
def test_data_that_does_not_fit_its_event_is_refused(attributes: dict[str, Any], error: type[LedgerError]) -> None:
    with pytest.raises(error):
        decode_fact(decode_envelope(changed(**attributes)))


def test_all_wrong_fields_of_the_data_are_named() -> None:
    data = {"types": [], "task": 1, "content": "", "scopes": ["nobody"], "owner": "x", "score": 9}
    with pytest.raises(InvalidPayload) as refusal:
        decode_fact(decode_envelope(changed(data=data)))
    errors = refusal.value.details["errors"]
    assert isinstance(errors, list)
    assert {fault["field"].split(".")[0] for fault in errors} == set(data)


def test_an_event_may_be_large_but_not_too_large() -> None:
    room = MAX_BODY_BYTES - len(encode(saved())) + len("内容 🙂".encode())
    fact = saved().fact.model_copy(update={"content": "x" * room})
    event = NewEvent(fact, entity_id="item/1", actor="user:ada")
    assert abs(len(encode(event)) - MAX_BODY_BYTES) < 16
    with pytest.raises(PayloadTooLarge, match="item/1"):
        encode(NewEvent(fact.model_copy(update={"content": "x" * (room + 32)}), "item/1", "user:ada"))


def test_what_is_too_large_is_told_what_to_do_which_is_not_what_was_done() -> None:
    long = "x" * MAX_BODY_BYTES
    item = NewEvent(saved().fact.model_copy(update={"content": long}), "item/1", "agent:scribe")
    kept = ResourceSaved(title="t", body=long, scopes=["public"], owner="agent:scribe")
    resource = NewEvent(kept, "code/x", "agent:scribe")
    told = []
    for event in (item, resource, item.sealed_by(EventSeal((DataKey("user:ada", new_secret()),)))):
        with pytest.raises(PayloadTooLarge) as refused:
            encode(event)
        told.append(refused.value.message)
    assert "keep long text as a resource and refer to it" in told[0]
    assert "keep long text as a resource" not in told[1]
    assert "several resources" in told[1]
    assert ["sealed" in each for each in told] == [False, False, True]


@given(body=st.binary(max_size=200))
def test_no_bytes_bring_the_reader_down(body: bytes) -> None:
    assert outcome(body) in ("bad_json", "invalid_payload")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(
    data=st.dictionaries(
        st.sampled_from([*KnowledgeSaved.model_fields, "type", "eval", "visibility", "other"]), json_values
    ),
    version=st.integers(1, 3),
)
def test_no_data_brings_an_upcast_down(data: dict[str, Any], version: int) -> None:
    body = changed(data=data, dataschema=f"urn:kledger:knowledge.saved:{version}")
    assert outcome(body) in ("read", "invalid_payload", "unsupported_version", "bad_json")


def outcome(body: bytes) -> str:
    """`read`, or the code of the error."""
    try:
        decode_fact(decode_envelope(body))
    except LedgerError as error:
        return error.code
    return "read"


def test_an_upcast_changes_nothing_but_its_answer() -> None:
    data = {"type": "tool", "task": "t", "content": "c", "scopes": ["public"], "owner": "user:a", "eval": {"score": 5}}
    before = orjson.dumps(data)
    assert upcast("knowledge.saved", 1, data)["types"] == ["tool"]
    assert orjson.dumps(data) == before
    assert upcast("knowledge.saved", FACTS["knowledge.saved"].version, data) is data


def test_every_version_up_to_the_current_one_is_reached() -> None:
    for fact in FACTS.values():
        assert known_versions(fact) == list(range(1, fact.version + 1))
    for name, version in UPCASTS:
        assert version < FACTS[name].version


def test_every_event_is_named_after_its_entity_in_the_past_tense() -> None:
    for name, fact in FACTS.items():
        assert issubclass(fact, Fact)
        assert name == f"{fact.entity()}.{fact.verb()}"
        assert fact.verb().endswith("ed") or fact.verb() in ("served", "forgotten", "withdrawn", "held")
