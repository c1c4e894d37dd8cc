"""What the log holds of a memory: its own version of the event, sealed words, and nothing where an item is none."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kledger.contract.errors import InvalidPayload
from kledger.contract.memory import LIFETIMES, Memory
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised, KnowledgeSaved, Origin
from ledger.privacy.vault import MemoryVault
from ledger.wire.envelope import decode_envelope, decode_fact, encode
from producers.operations.lifetimes import VARIABLE, lifetimes_from_environment
from tests.projections.histories import rows, saved, stored, view_of
from tests.sealed_events import sealed_event

EPISODE = Memory(
    layer="episodic",
    kind="incident",
    importance=0.7,
    session="sess_123",
    event="the login broke",
    participants=["user_abc"],
    outcome="mended",
    artifacts=["fix_sha"],
    happened_at="2026-02-17T14:30:00+01:00",
)
ORIGIN = Origin(trace_id="t")


@pytest.mark.parametrize(
    ("more", "version"),
    [
        ({}, 2),
        ({"origin": ORIGIN}, 3),
        ({"memory": EPISODE}, 4),
        ({"origin": ORIGIN, "memory": EPISODE}, 4),
        ({"supersedes": "k0"}, 5),
        ({"origin": ORIGIN, "memory": EPISODE, "supersedes": "k0"}, 5),
    ],
)
def test_a_save_is_written_as_the_version_of_what_it_states(more: dict[str, Any], version: int) -> None:
    envelope = decode_envelope(encode(saved(**more)))
    assert envelope.dataschema == f"urn:kledger:knowledge.saved:{version}"
    assert envelope.data.keys() & {"origin", "memory", "supersedes"} == more.keys()
    assert decode_fact(envelope) == saved(**more).fact


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_save_that_does_not_state_what_its_version_has_is_refused(version: int) -> None:
    envelope = decode_envelope(encode(saved()))
    envelope = envelope.model_copy(update={"dataschema": f"urn:kledger:knowledge.saved:{version}"})
    with pytest.raises(InvalidPayload, match="write version 2"):
        decode_fact(envelope)


def test_a_memory_in_a_version_that_had_none_is_read_over_as_it_was_then() -> None:
    body = orjson.loads(encode(saved(origin=ORIGIN, memory=EPISODE)))
    fact = decode_fact(decode_envelope(orjson.dumps({**body, "dataschema": "urn:kledger:knowledge.saved:3"})))
    assert isinstance(fact, KnowledgeSaved)
    assert (fact.memory, fact.origin) == (None, ORIGIN)


def test_a_foreign_memory_with_the_fields_of_another_layer_is_refused_with_its_reason() -> None:
    body = orjson.loads(encode(saved(memory=EPISODE)))
    body["data"]["memory"]["steps"] = ["1"]
    (event,) = stored([saved(memory=EPISODE)])
    con = view_of([event._replace(body=orjson.dumps(body))]).con
    assert rows(con, "SELECT count(*) FROM memory_items") == [(0,)]
    ((code, reason),) = rows(con, "SELECT code, reason FROM refused_events")
    assert (code, "procedural" in reason) == ("invalid_payload", True)


def test_later_versions_of_an_item_keep_its_memory() -> None:
    log = [
        saved(memory=EPISODE),
        NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a"),
        NewEvent(KnowledgeRetired(), "k1", "agent:a"),
    ]
    con = view_of(stored(log)).con
    assert rows(con, "SELECT DISTINCT layer, kind, memory->>'event' FROM knowledge_versions") == [
        ("episodic", "incident", "the login broke")
    ]
    query = "SELECT content, status, happened_at = TIMESTAMPTZ '2026-02-17 13:30:00+00' FROM memory_items"
    assert rows(con, query) == [("anew", "retired", True)]


async def test_the_words_of_a_memory_are_sealed_and_what_it_is_found_by_is_not() -> None:
    key = await MemoryVault().obtain("user:ann")
    event = saved(owner="user:ann", scopes=["user:ann"], memory=EPISODE)
    body = encode(sealed_event(event, [key]))
    for word in ("login", "user_abc", "mended", "fix_sha"):
        assert word.encode() not in body
    for word in ("episodic", "incident", "sess_123", "2026-02-17T14:30:00+01:00"):
        assert word.encode() in body


def test_the_setting_adds_kinds_and_changes_lifetimes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert lifetimes_from_environment() == LIFETIMES
    monkeypatch.setenv(VARIABLE, "meeting=2d, mood=12h")
    assert lifetimes_from_environment() == {**LIFETIMES, "meeting": 172_800, "mood": 43_200}
    for wrong in ("meeting", "meeting=2w", "Meeting=2d", "mood=0s", "mood=99999d"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(InvalidPayload, match=VARIABLE):
            lifetimes_from_environment()
