"""How does a batch read what is sealed? Once, before it is decoded; what cannot be opened is refused.

The words of a person whose key is destroyed become the fallback, `"[erased]"` or `{}`: the same log with the same
vault gives the same views. What is refused for any reason keeps the bytes that the log has.

A seal whose key the vault does not have is refused as one that does not verify. The key may come later, of a person who
was named before it was theirs; then a replay, which has it, has to give the same reason.

Whether a seal counts is the same with the key and after that is gone: an event's MAC bears it out, and where it has
none, the tombstone says which did (ledger/privacy/seal_witness.py).

The vault is asked for the keys of whole sealed values alone, and for a bounded number of well-formed names an event:
what an event states can have that event refused, and never makes a question that the vault cannot answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson
import structlog

from kledger.contract.errors import InvalidPayload, KeyMissing, LedgerError, SealBroken
from ledger.event import StoredEvent
from ledger.events import FACTS
from ledger.privacy.keyring import Keyring
from ledger.privacy.seal_mark import MARK
from ledger.privacy.seal_witness import ATTRIBUTE
from ledger.privacy.sealed import (
    RESOURCE,
    USER,
    Lookup,
    may_be_sealed,
    name_in,
    not_verified,
    open_document,
    sealed_values,
)
from ledger.privacy.vault import Held, Tombstone
from ledger.wire.subjects import stated_by_in
from projections.engine import forgotten
from projections.fold_kit.decisions import Refusal

log = structlog.get_logger(__name__)

MOST_NAMES = 4
"""Persons that the sealed values of one event may name. Our writers name one: the last of those it belongs to."""

# Never JSON, so that decoding refuses it whatever road it takes; the reason is then told by `told`.
_UNREADABLE = b""


@dataclass(frozen=True, slots=True)
class Opened:
    """A batch ready to be decoded, and (code, reason) of each position that could not be opened.

    `erased` has the places of an event's words whose key is destroyed, by its position.
    """

    events: list[StoredEvent]
    stored: list[StoredEvent]
    failed: dict[int, tuple[str, str]]
    erased: dict[int, list[str]] = field(default_factory=dict)

    def told(self, refusals: Iterable[Refusal]) -> list[Refusal]:
        """Refusals with the bytes that the log has, and with what kept a seal from being opened."""
        first = self.stored[0].position
        result = []
        for refusal in refusals:
            at = refusal.event.position
            code, reason = self.failed.get(at, (refusal.code, refusal.reason))
            result.append(Refusal(self.stored[at - first], code, reason))
        return result


@dataclass(frozen=True, slots=True)
class Sealed:
    """An event that holds sealed values, its document, and the persons whose keys they name."""

    event: StoredEvent
    document: dict[str, Any]
    names: set[str]

    @property
    def id(self) -> str:
        """The event's id, as its seals are bound to it."""
        return str(self.document["id"])


def open_events(keyring: Keyring, events: list[StoredEvent]) -> Opened:
    """Open what is sealed in consecutive events.

    Raises what the vault raises (BrokerUnavailable, WrongMasterKey): then nothing may be folded. What an event states
    raises nothing.
    """
    opened, sealed, failed = list(events), list[Sealed](), dict[int, tuple[str, str]]()
    first = events[0].position if events else 0

    def fails(event: StoredEvent, error: LedgerError) -> None:
        failed[event.position] = (error.code, error.message)
        opened[event.position - first] = event._replace(body=_UNREADABLE)

    for event, unfounded in forgotten.untold(keyring, events):
        fails(event, unfounded)
    for event in events:
        if not may_be_sealed(event.body) or event.position in failed:
            continue
        try:
            found = sealed_in(event)
        except (InvalidPayload, SealBroken) as error:
            fails(event, error)
        else:
            sealed += [found] if found is not None else []
    if not sealed and not failed:
        return Opened(events, events, {})
    look = _asked(keyring, {name for each in sealed for name in each.names})
    missing, erased = dict[str, int](), dict[int, list[str]]()
    for each in sealed:
        gone = list[str]()
        try:
            opened[each.event.position - first] = each.event._replace(body=body_opened(each, look, gone.append))
        except KeyMissing as error:
            missing.setdefault(str(error.details["key"]), each.event.position)
            fails(each.event, not_verified(str(error.details["place"])))
        except (InvalidPayload, SealBroken) as error:
            fails(each.event, error)
        else:
            if gone:
                erased[each.event.position] = gone
    if missing:
        log.warning(
            "events are refused whose keys the vault does not have: is it the vault of this ledger?",
            keys=len(missing),
            one=next(iter(missing)),
            first=min(missing.values()),
        )
    return Opened(opened, events, failed, erased)


def sealed_in(event: StoredEvent) -> Sealed | None:
    """The event's sealed values; None where it has none. Raises InvalidPayload, SealBroken.

    Broken is, whatever the vault has, what no node ever writes: a resource's seal anywhere but where a secret has its
    place, and a MAC with nothing that it could bear out.
    """
    try:
        document = orjson.loads(event.body)
    except orjson.JSONDecodeError:
        return None  # decoding says what is wrong with it
    if not isinstance(document, dict) or "data" not in document:
        return None
    if not isinstance(document.get("id"), str):  # what else it may be has no bound, and decoding says what is wrong
        return None
    names = set[str]()
    found = secrets = 0
    for value in sealed_values(document["data"]):
        found += 1
        if (name := name_in(value)).startswith(USER):
            names.add(name)
        else:  # what is a resource's stays sealed
            secrets += 1
        if len(names) > MOST_NAMES:
            raise InvalidPayload(
                f"its sealed values name more than {MOST_NAMES} persons: seal all of an event for the same ones",
                errors=[],
            )
    if secrets > _secrets_in_place(document):
        raise SealBroken(
            "a text in it is sealed with a resource's key, which seals secure_body of resource.saved alone"
        )
    if ATTRIBUTE in document and (not names or document[ATTRIBUTE] is None):
        raise SealBroken(f"it states {ATTRIBUTE}, and has nothing sealed that this could bear out")
    return Sealed(event, document, names) if found else None


def _secrets_in_place(document: dict[str, Any]) -> int:
    """How many texts sealed with a resource's key stand where the event's kind has a place for one."""
    kind, data = document.get("type"), document["data"]
    fact = FACTS.get(kind) if isinstance(kind, str) else None
    if fact is None or not isinstance(data, dict):
        return 0
    stated = (data.get(name) for name in fact.sealed_only)
    return sum(isinstance(each, str) and each.startswith(MARK + RESOURCE) for each in stated)


def _asked(keyring: Keyring, names: set[str]) -> Lookup:
    """Ask for these names at once; who looks for one of them again does not ask anew, whether it has a key or none."""
    keyring.learn(names)
    return lambda name: keyring.known(name) if name in names else keyring.look(name)


def body_opened(sealed: Sealed, look: Lookup, erased: Callable[[str], None] = lambda _place: None) -> bytes:
    """The body as it is decoded: what is sealed opened, and what bore it out left away.

    `erased` hears the place of what cannot be read any more. Raises KeyMissing, SealBroken, InvalidPayload.
    """
    position, document, numbers = sealed.event.position, {**sealed.document}, Counter[str]()
    borne_out = _borne_out(sealed, document.pop(ATTRIBUTE, None), look)

    def vouch(gone: Tombstone, _place: str, _sealed: str) -> bool:
        number = numbers[gone.name]
        numbers[gone.name] += 1
        return borne_out or gone.unsworn is None or gone.unsworn.counts(position, number)

    if not borne_out and not all(_fits(look(name), position) for name in sealed.names):
        raise InvalidPayload("what is sealed in it did not fit it", errors=[])
    by = stated_by_in(sealed.event.subject)
    document["data"] = open_document(document["data"], look, sealed.id, by=by, vouch=vouch, erased=erased)
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError as error:  # an attribute nested without end
        raise InvalidPayload(f"what is sealed in it cannot be opened: {error}", errors=[]) from error


def _borne_out(sealed: Sealed, stated: object, look: Lookup) -> bool:
    """Whether a MAC bears out what is sealed; False where none can. Raises KeyMissing, SealBroken (it belies it)."""
    if stated is None or not sealed.names:
        return False
    if len(sealed.names) > 1:  # our writers seal all of an event for the same persons
        raise not_verified()
    (name,) = sealed.names
    held = look(name)
    if held is None:
        raise KeyMissing(f"the vault has no key {name!r}: is it the vault of this ledger?", key=name, place="")
    if held.witness is None:  # an earlier version left this tombstone
        return False
    if not held.witness.vouches(stated, sealed.event.subject, sealed.id, sealed.document["data"]):
        raise not_verified()
    return True


def _fits(held: Held | None, position: int) -> bool:
    return not isinstance(held, Tombstone) or held.unsworn is None or held.unsworn.fits(position)
