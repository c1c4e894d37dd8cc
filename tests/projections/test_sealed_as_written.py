"""What our writers sealed is opened as bytes, and comes to what parsing and writing it anew comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from ledger.event import Lineage, StoredEvent
from ledger.privacy import sealed_as_written
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, Held, MemoryVault, new_secret
from ledger.privacy.whose_text import has_text
from ledger.vocabulary.examples import EXAMPLES
from projections.engine.unsealing import Opened, open_events
from tests.projections.histories import stored
from tests.sealed_events import sealed_event

ADA, BOB = "user:ada", "user:bob"
KEYS: dict[str, Held] = {name: DataKey(name, new_secret()) for name in (ADA, BOB)}
LINEAGE = Lineage(trace_id="t-1", message_id="轨迹", causation_id="c-1")


def sealed(name: str, *persons: str) -> StoredEvent:
    keys = [key for person in persons if isinstance(key := KEYS[person], DataKey)]
    event = replace(EXAMPLES[name], lineage=LINEAGE)
    return stored([sealed_event(event, keys)])[0]


# A resource's secret, which stays sealed, is left to the other road.
PERSONAL = [name for name, event in EXAMPLES.items() if has_text(event.fact) and not event.fact.sealed_only]


def parsed(monkeypatch: pytest.MonkeyPatch, events: list[StoredEvent], held: dict[str, Held]) -> Opened:
    """What the events come to when each is parsed."""
    with monkeypatch.context() as patched:
        patched.setattr(sealed_as_written, "as_written", lambda _event: None)
        return open_events(keyring(held), events)


def keyring(held: dict[str, Held]) -> Keyring:
    return Keyring(lambda names: {name: held[name] for name in names if name in held})


@pytest.mark.parametrize("persons", [(ADA,), (ADA, BOB)], ids=["one person's", "of two persons"])
@pytest.mark.parametrize("name", PERSONAL)
def test_what_our_writers_sealed_opens_without_being_parsed(
    name: str, persons: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = sealed(name, *persons)
    plainly = sealed_as_written.as_written(event)
    assert plainly is not None
    assert sealed_as_written.opened(plainly, KEYS.get) is not None
    opened = open_events(keyring(KEYS), [event])
    assert opened == parsed(monkeypatch, [event], KEYS)
    assert orjson.loads(opened.events[0].body)["data"] == orjson.loads(stored([EXAMPLES[name]])[0].body)["data"]


@pytest.mark.parametrize("name", ["knowledge.saved", "profile.patched"])
def test_a_byte_that_was_changed_anywhere_comes_to_what_parsing_makes_of_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = sealed(name, ADA, BOB).body
    changed = [body[:at] + new + body[at + 1 :] for at in range(len(body)) for new in (b"A", b'"', b"\\", b"\xff")]
    changed += [body[:at] + b" " + body[at:] for at in range(0, len(body), 7)]
    log = [sealed(name)._replace(position=at, body=each) for at, each in enumerate(changed, 1)]
    assert open_events(keyring(KEYS), log) == parsed(monkeypatch, log, KEYS)


MOVED: dict[str, Callable[[bytes, bytes], bytes]] = {
    "data twice": lambda body, data: body.replace(b'"data":', b'"data":' + data + b',"data":', 1),
    "data within an attribute": lambda body, data: body.replace(
        b'"data":', b'"more":{"a":1,"data":' + data + b'},"data":', 1
    ),
    "other data after it": lambda body, _: body[:-1] + b',"data":{}}',
    "an attribute after it": lambda body, _: body[:-1] + b',"id":"another"}',
    "a line break after it": lambda body, _: body + b"\n",
    "an id twice": lambda body, _: body.replace(b'"id":', b'"id":"another","id":', 1),
    "an id with an escape": lambda body, _: body.replace(b'"source":"', b'"source":"\\u0041', 1),
    "no MAC": lambda body, _: body.replace(b'"sealmac":', b'"other":', 1),
    "a MAC that is none": lambda body, _: body.replace(b'"sealmac":"', b'"sealmac":"A', 1),
    "a trace twice": lambda body, _: body.replace(b'"traceid":', b'"traceid":"t-0","traceid":', 1),
}


@pytest.mark.parametrize("how", MOVED)
def test_what_is_not_as_our_writers_write_it_comes_to_what_parsing_makes_of_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = sealed("knowledge.saved", ADA)
    odd = MOVED[how](event.body, event.body.partition(b'"data":')[2][:-1])
    assert odd != event.body
    log = [event._replace(body=odd)]
    assert open_events(keyring(KEYS), log) == parsed(monkeypatch, log, KEYS)


async def test_a_destroyed_or_missing_key_is_told_as_where_events_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = MemoryVault()
    for person in (ADA, BOB):
        await vault.obtain(person)
    ada, bob = (vault.held([ADA, BOB])[each] for each in (ADA, BOB))
    assert isinstance(ada, DataKey)
    assert isinstance(bob, DataKey)
    log = stored([sealed_event(EXAMPLES["knowledge.saved"], keys) for keys in ([ada], [bob], [ada, bob], [bob, ada])])
    gone = await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    cases: list[dict[str, Held]] = [{ADA: gone, BOB: bob}, {BOB: bob}, {ADA: ada}, {}]
    for held in cases:
        opened = open_events(keyring(held), log)
        assert opened == parsed(monkeypatch, log, held)
        assert opened.erased if ADA in held and held[ADA] is gone else opened.failed


def test_a_seal_moved_to_another_place_of_its_event_does_not_open() -> None:
    """As whoever holds the witness of a key, which decrypts nothing, could write it."""
    event = sealed("knowledge.saved", ADA)
    document = orjson.loads(event.body)
    document["data"]["task"], document["data"]["content"] = document["data"]["content"], document["data"]["task"]
    key = KEYS[ADA]
    assert isinstance(key, DataKey)
    document["sealmac"] = key.witness.mac(event.subject, document["id"], document["data"])
    moved = event._replace(body=orjson.dumps(document))
    assert sealed_as_written.as_written(moved) is not None
    (failed,) = open_events(keyring(KEYS), [moved]).failed.values()
    assert failed[0] == "seal_broken"
