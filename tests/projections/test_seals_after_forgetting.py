"""Whether a seal verified is the same before and after its person was forgotten: no refused event begins to count.

Every kind of event that holds words is forged, garbled, moved and copied, before the ledger's own with the same id.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.contract.errors import LedgerError, SubjectForgotten
from kledger.contract.seal_mark import MARK
from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import ERASED, OBJECT, USER, seal
from ledger.privacy.vault import DataKey, Held, MemoryVault, Tombstone, new_secret
from ledger.privacy.whose_text import has_text
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.seal_mac import ATTRIBUTE, Unsworn
from ledger.wire.subjects import stated_by_in
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.engine.digest import RelationDigest
from projections.engine.model_check import validated
from projections.engine.seals_without_mac import Examination
from tests.examples import tries
from tests.projections.histories import histories, new_view, replace_position, rows, state, stored
from tests.sealed_events import sealed_event

ADA, BOB, MALLORY = "user:ada", "user:bob", "agent.mallory"
Document = dict[str, Any]


@pytest.fixture
async def vault() -> MemoryVault:
    vault = MemoryVault()
    for person in (ADA, BOB):
        await vault.obtain(person)
    return vault


@dataclass(frozen=True)
class Views:
    """What a log came to: the digest of every relation, (code, reason) of what is refused, the positions that count."""

    state: dict[str, RelationDigest]
    refused: dict[int, tuple[str, str]]
    counted: set[int]

    @property
    def but_for_reasons(self) -> dict[str, RelationDigest]:
        return {name: digest for name, digest in self.state.items() if name != "refused_events"}


def folded(look: Callable[[list[str]], dict[str, Held]], log: list[StoredEvent], road: str = "many") -> Views:
    """The views of a log, folded set by set or event by event."""
    bench = new_view()
    before, bench.keyring = bench.keyring, Keyring(look)
    size = batch.SMALL if road == "few" else len(log)
    try:
        for start in range(0, len(log), size):
            fold_batch(bench, log[start : start + size])
    finally:
        bench.keyring = before
    refused = {
        at: (code, reason) for at, code, reason in rows(bench.con, "SELECT position, code, reason FROM refused_events")
    }
    return Views(state(bench), refused, {at for (at,) in rows(bench.con, "SELECT position FROM events")})


async def forget(vault: MemoryVault, log: list[StoredEvent], person: str = ADA) -> Unsworn:
    """Destroy the person's key as a node does."""
    await vault.obtain(person)
    examination = Examination(person, Keyring(vault.held).look)
    examination.read(log)
    found = Unsworn.read(examination.found.until, examination.found.pieces())
    assert found == examination.found
    await vault.destroy(person, by="user:local", at="2026-03-05T12:00:00Z", receipt="r", unsworn=found)
    return found


def changed(event: StoredEvent, change: Callable[[Document], object], actor: str = "") -> StoredEvent:
    """The event with its document changed, and stated by somebody else."""
    document = orjson.loads(event.body)
    change(document)
    subject = event.subject
    if actor:
        document["actor"] = actor.replace(".", ":")
        subject = ".".join((*subject.split(".")[:5], actor))
    return event._replace(subject=subject, body=orjson.dumps(document))


def resealed(document: Document, text: Callable[[str], str], data: str = "data") -> None:
    """Put another text in the place of every sealed one."""

    def over(part: Any) -> Any:
        if isinstance(part, str):
            return text(part) if part.startswith(MARK) else part
        if isinstance(part, dict):
            return {name: over(value) for name, value in part.items()}
        return [over(value) for value in part] if isinstance(part, list) else part

    document[data] = over(document[data])


def garbled(text: str) -> str:
    return text[:-9] + ("B" if text[-9] == "A" else "A") + text[-8:]


def some(size: int = 32) -> str:
    return base64.b64encode(os.urandom(size)).decode()


def without_mac(document: Document) -> None:
    del document[ATTRIBUTE]


def both(*changes: Callable[[Document], object]) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        for one in changes:
            one(document)

    return change


def forged(person: str) -> Callable[[Document], None]:
    return lambda document: resealed(document, lambda _: f"{MARK}{person}:{some(60)}")


def garble(document: Document) -> None:
    resealed(document, garbled)


def move(document: Document) -> None:
    document["id"] = f"moved-{document['id']}"


def say_more(document: Document) -> None:
    document["data"]["said_by_nobody"] = 1


# What somebody else may publish for an event of the ledger: what is changed in it, and who states it ("" its actor).
ATTACKS: dict[str, tuple[Callable[[Document], object], str]] = {
    "forged": (both(without_mac, forged(ADA)), MALLORY),
    "forged by its actor": (both(without_mac, forged(ADA)), ""),
    "forged, with the MAC": (forged(ADA), ""),
    "forged, with a MAC": (both(forged(ADA), lambda d: d.update({ATTRIBUTE: some()})), MALLORY),
    "a MAC that is no text": (lambda d: d.update({ATTRIBUTE: {"a": 1}}), ""),
    "a MAC with other letters": (lambda d: d.update({ATTRIBUTE: "é" * 44}), ""),
    "garbled": (garble, ""),
    "garbled, without the MAC": (both(without_mac, garble), ""),
    "of another event": (move, ""),
    "of another event, without the MAC": (both(without_mac, move), ""),
    "of another actor": (lambda _: None, MALLORY),
    "of another actor, without the MAC": (without_mac, MALLORY),
    "more said": (say_more, ""),
    "of a person who has no key": (both(without_mac, forged("user:nobody")), MALLORY),
    "of a person who has no key, with a MAC": (forged("user:nobody"), MALLORY),
}


def honest(vault: MemoryVault, keys: list[str]) -> list[StoredEvent]:
    """An event of every kind that holds words, sealed for these persons; every second one as before there was a MAC."""
    held = [key for key in vault.held(keys).values() if isinstance(key, DataKey)]
    events = [event for event in EXAMPLES.values() if has_text(event.fact)]
    log = stored([sealed_event(event, held) for event in events])
    return [changed(event, without_mac) if number % 2 else event for number, event in enumerate(log)]


def said_instead(event: StoredEvent) -> StoredEvent:
    """The event with the fallback in the place of what is sealed in it, in clear."""

    def over(part: Any) -> Any:
        if isinstance(part, dict):
            return {} if set(part) == {OBJECT} else {name: over(value) for name, value in part.items()}
        if isinstance(part, list):
            return [over(value) for value in part]
        return ERASED if isinstance(part, str) and part.startswith(MARK + USER) else part

    document = orjson.loads(event.body)
    document.pop(ATTRIBUTE, None)
    document["data"] = over(document["data"])
    return event._replace(body=orjson.dumps(document))


def in_order(events: list[StoredEvent]) -> list[StoredEvent]:
    return [replace_position(event, position) for position, event in enumerate(events, 1)]


def log_under_attack(ours: list[StoredEvent]) -> tuple[list[StoredEvent], dict[int, str]]:
    """Before every event of ours all attacks upon it, and where each attack stands."""
    log, attacks = list[StoredEvent](), dict[int, str]()
    for event in ours:
        for name, (change, actor) in ATTACKS.items():
            log.append(attacked(event, change, actor))
            attacks[len(log)] = name
        log.append(event)
    return in_order(log), attacks


def attacked(event: StoredEvent, change: Callable[[Document], object], actor: str) -> StoredEvent:
    document = orjson.loads(event.body)
    document.setdefault(ATTRIBUTE, some())  # what has none is attacked as if it had
    return changed(event._replace(body=orjson.dumps(document)), change, actor)


@pytest.mark.parametrize(
    ("keys", "road"), [([ADA], "few"), ([ADA], "many"), ([ADA, BOB], "many"), ([BOB, ADA], "many")]
)
async def test_what_was_refused_stays_refused_and_what_counted_counts_when_its_person_is_forgotten(
    vault: MemoryVault, keys: list[str], road: str
) -> None:
    log, attacks = log_under_attack(honest(vault, keys))
    before = folded(vault.held, log, road)
    assert {name for at, name in attacks.items() if at in before.counted} == set()
    expected = folded(vault.held, [said_instead(e) if e.position in before.counted else e for e in log], road)
    assert expected.counted == before.counted
    await forget(vault, log)
    after = folded(vault.held, log, road)
    assert {name for at, name in attacks.items() if at in after.counted} == set()
    assert after.refused == before.refused
    assert after.state == expected.state
    await forget(vault, log, BOB)
    assert folded(vault.held, log).refused == before.refused, "the second of two is forgotten as well"


async def test_what_is_forged_after_a_forgetting_is_refused_and_what_was_sealed_before_it_counts(
    vault: MemoryVault,
) -> None:
    ours = honest(vault, [ADA])
    told, in_time = ours[1::2], ours[::2]  # what has a MAC was sealed in time, and is kept late
    expected = folded(vault.held, in_order([*told, *in_time])).counted
    await forget(vault, in_order(told))
    late, attacks = log_under_attack(in_time)
    without = [changed(event, without_mac) for event in in_time]
    log = in_order([*told, *late, *without])
    after = folded(vault.held, log)
    refused = {log[at - 1].position for at, (code, _) in after.refused.items() if code == "seal_broken"}
    assert {attacks[at - len(told)] for at in after.counted if at - len(told) in attacks} == set()
    assert {len(told) + at for at in attacks} <= refused
    assert set(range(len(log) - len(without) + 1, len(log) + 1)) <= refused, "a true copy without its MAC"
    assert len(after.counted) == len(expected)


async def test_who_never_had_a_key_and_is_forgotten_makes_nothing_count(vault: MemoryVault) -> None:
    log, _ = log_under_attack(honest(vault, [ADA])[:4])
    before = folded(vault.held, log)
    await forget(vault, log, "user:nobody")
    assert folded(vault.held, log) == before
    with pytest.raises(SubjectForgotten):
        await vault.obtain("user:nobody")


async def test_a_tombstone_of_an_earlier_version_means_what_it_meant_up_to_where_it_is_bound(
    vault: MemoryVault,
) -> None:
    ours = [changed(event, lambda document: document.pop(ATTRIBUTE, None)) for event in honest(vault, [ADA])]
    forgeries = [changed(event, forged(ADA), MALLORY) for event in ours]
    log = in_order([*forgeries, *ours])
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    as_it_was = folded(vault.held, log)
    assert {code for code, _ in as_it_was.refused.values()} & {"seal_broken"} == set()
    bound = Tombstone(ADA, "user:local", "2026-03-05T12:00:00Z", "r", unsworn=Unsworn(len(log)))
    assert folded(lambda _names: {ADA: bound}, log) == as_it_was
    more = folded(lambda _names: {ADA: bound}, in_order([*log, *forgeries]))
    assert {more.refused[len(log) + at][0] for at in range(1, len(forgeries) + 1)} == {"seal_broken"}


MODES = ("clear", "sworn", "sworn", "unsworn", "unsworn", "forged", "garbled", "wrong MAC")


@settings(max_examples=tries(40), deadline=None)
@given(log=histories(), drawn=st.data())
def test_a_forgetting_changes_of_any_history_the_persons_words_alone(
    log: list[StoredEvent], drawn: st.DataObject
) -> None:
    keys: dict[str, DataKey] = {name: DataKey(name, new_secret()) for name in (ADA, BOB)}
    held: dict[str, Held] = dict(keys)
    for at, event in enumerate(log):
        names = drawn.draw(st.sampled_from([[ADA], [BOB], [ADA, BOB], [BOB, ADA]]))
        log[at] = treated(event, drawn.draw(st.sampled_from(MODES)), [keys[name] for name in names])
    before = folded(held_of(keys), log)
    expected = folded(held_of(keys), [said_instead(e) if e.position in before.counted else e for e in log])
    for person in drawn.draw(st.permutations([ADA, BOB])):
        examination = Examination(person, held.get)
        examination.read(log)
        held[person] = Tombstone(person, "user:local", "", "r", keys[person].witness, examination.found)
        after = folded(held_of(held), log)
        assert after.counted == before.counted
        broken = {at: said for at, said in before.refused.items() if said[0] == "seal_broken"}
        assert broken.items() <= after.refused.items()
    # What did not fit has another reason once nobody can read it.
    assert after.but_for_reasons == expected.but_for_reasons


def held_of(held: Mapping[str, Held]) -> Callable[[list[str]], dict[str, Held]]:
    return lambda names: {name: held[name] for name in names if name in held}


def treated(event: StoredEvent, mode: str, keys: list[DataKey]) -> StoredEvent:
    """The event with its words sealed, truly or not. A true MAC has only what fits: the ledger seals nothing else."""
    try:
        document = orjson.loads(event.body)
        data, event_id, by = document["data"], str(document["id"]), stated_by_in(event.subject)
        texts = {name: data[name] for name in ("task", "content", "tags", "patch", "query", "reason") if data.get(name)}
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return event
    if mode == "clear":
        return event
    if mode == "forged":
        keys = [*keys[:-1], DataKey(keys[-1].name, new_secret())]
    for name, value in texts.items():
        if isinstance(value, str | dict):
            data[name] = seal(value, keys, event_id, f"/data/{name}", by)
    if mode == "garbled":
        garble(document)
    witness = keys[-1].witness if mode == "sworn" else DataKey("user:x", new_secret()).witness
    if mode == "wrong MAC" or (mode == "sworn" and fits(event)):
        document[ATTRIBUTE] = witness.mac(event.subject, event_id, data)
    return event._replace(body=orjson.dumps(document))


def fits(event: StoredEvent) -> bool:
    try:
        validated(event)
    except LedgerError:
        return False
    return True
