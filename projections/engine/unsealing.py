"""Unsealing: opens the sealed values of a batch before it is decoded; an event that cannot be opened is refused.

Values of a person whose key is destroyed become the fallback, `"[erased]"` or `{}`: the same log with the same vault
gives the same views. A refused event keeps the bytes that the log has.

A seal whose key the vault does not have is refused with the same reason as one that does not verify. The key may be
made later; a replay, which then has it, must give the same reason.

Whether a seal counts is the same with the key and after it is destroyed: an event's MAC attests it, and for events
without a MAC the tombstone records which seals verified (ledger/wire/seal_mac.py).

The vault is asked for the keys of complete sealed values only, and for a bounded number of well-formed names an event:
a hostile event can only get itself refused, and never causes a request that the vault cannot answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson
import structlog

from kledger.contract.errors import InvalidPayload, KeyMissing, LedgerError, SealBroken
from kledger.contract.seal_mark import MARK
from ledger.event import StoredEvent
from ledger.events import FACTS
from ledger.privacy import sealed_as_written
from ledger.privacy.keyring import Keyring
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
from ledger.wire.seal_mac import ATTRIBUTE
from ledger.wire.subjects import stated_by_in
from projections.engine import forgotten
from projections.fold_kit.decisions import Refusal

log = structlog.get_logger(__name__)

MOST_NAMES = 4
"""Persons that the sealed values of one event may name. Our writers name one: the last of those it belongs to."""

# Not JSON, so that either path of decoding refuses it; `Opened.as_stored` then sets the reason.
_UNREADABLE = b""


class Extent(NamedTuple):
    """The first and last position of a batch, and when the log stored its last, earliest and latest event, in ns."""

    first: int
    last: int
    last_ns: int
    earliest_ns: int
    latest_ns: int


@dataclass(frozen=True)  # no slots: the extent is kept beside the fields
class Opened:
    """A batch ready to be decoded, and (code, reason) of each position that could not be opened.

    `erased` has, by position, the places of the values in an event whose key is destroyed. `known` is the extent, where
    it is known without a look at the events.
    """

    events: Sequence[StoredEvent]
    stored: Sequence[StoredEvent]
    failed: dict[int, tuple[str, str]]
    erased: dict[int, list[str]] = field(default_factory=dict)
    known: Extent | None = None

    @cached_property
    def extent(self) -> Extent:
        """Where the batch, which is not empty, stands in the log."""
        if self.known is not None:
            return self.known
        times = [event.stored_ns for event in self.stored]
        return Extent(self.stored[0].position, self.stored[-1].position, times[-1], min(times), max(times))

    def as_stored(self, refusals: Iterable[Refusal]) -> list[Refusal]:
        """Refusals with the events as the log has them, and with the reason why a seal could not be opened."""
        first, result = self.extent.first, []
        for refusal in refusals:
            at = refusal.event.position
            code, reason = self.failed.get(at, (refusal.code, refusal.reason))
            result.append(Refusal(self.stored[at - first], code, reason))
        return result


@dataclass(frozen=True, slots=True)
class Sealed:
    """An event with sealed values, its document, and the persons whose keys the values name."""

    event: StoredEvent
    document: dict[str, Any]
    names: set[str]

    @property
    def id(self) -> str:
        """The event's id, to which its seals are bound."""
        return str(self.document["id"])


def open_events(keyring: Keyring, events: list[StoredEvent]) -> Opened:
    """Open the sealed values in events, which ascend by position.

    Raises what the vault raises (BrokerUnavailable, WrongMasterKey): then nothing may be folded. An invalid event
    raises nothing.
    """
    first = events[0].position if events else 0
    opened = {event.position - first: event for event in events}
    sealed, failed = list[Sealed](), dict[int, tuple[str, str]]()
    written = list[sealed_as_written.Written]()

    def fails(event: StoredEvent, error: LedgerError) -> None:
        failed[event.position] = (error.code, error.message)
        opened[event.position - first] = event._replace(body=_UNREADABLE)

    def search(event: StoredEvent) -> None:
        try:
            with_seals = sealed_in(event)
        except (InvalidPayload, SealBroken) as error:
            fails(event, error)
        else:
            sealed.extend([with_seals] if with_seals is not None else [])

    for event, error in forgotten.unconfirmed(keyring, events):
        fails(event, error)
    # Most batches have no seal at all: one look at all bodies takes a third of the time.
    some_sealed = may_be_sealed(b"".join([event.body for event in events]))
    for event in events if some_sealed else ():
        if not may_be_sealed(event.body) or event.position in failed:
            continue
        if (plainly := sealed_as_written.as_written(event)) is not None:
            written.append(plainly)
        else:
            search(event)
    if not sealed and not failed and not written:
        return Opened(events, events, {})
    look = _lookup(keyring, {*(name for each in sealed for name in each.names), *(each.person for each in written)})
    for plainly in written:
        body = sealed_as_written.opened(plainly, look)
        if body is None:
            search(plainly.event)
        else:
            opened[plainly.event.position - first] = plainly.event._replace(body=body)
    missing, erased = dict[str, int](), dict[int, list[str]]()
    for each in sealed:
        erased_places = list[str]()
        try:
            body = body_opened(each, look, erased_places.append)
            opened[each.event.position - first] = each.event._replace(body=body)
        except KeyMissing as error:
            missing.setdefault(str(error.details["key"]), each.event.position)
            fails(each.event, not_verified(str(error.details["place"])))
        except (InvalidPayload, SealBroken) as error:
            fails(each.event, error)
        else:
            if erased_places:
                erased[each.event.position] = erased_places
    if missing:
        log.warning(
            "events are refused whose keys the vault does not have: is it the vault of this ledger?",
            keys=len(missing),
            one=next(iter(missing)),
            first=min(missing.values()),
        )
    return Opened(list(opened.values()), events, failed, erased)


def sealed_in(event: StoredEvent) -> Sealed | None:
    """The event's sealed values; None where it has none. Raises InvalidPayload, SealBroken.

    SealBroken is raised without a look at the vault for what no node writes: a resource's seal outside of the fields
    for secrets, and a MAC without any sealed value.
    """
    try:
        document = orjson.loads(event.body)
    except orjson.JSONDecodeError:
        return None  # the decoder refuses it
    if not isinstance(document, dict) or "data" not in document:
        return None
    if not isinstance(document.get("id"), str):  # any other value has no bound; the decoder refuses it
        return None
    names = set[str]()
    values = secrets = 0
    for value in sealed_values(document["data"]):
        values += 1
        if (name := name_in(value)).startswith(USER):
            names.add(name)
        else:  # a resource's secret stays sealed
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
    return Sealed(event, document, names) if values else None


def _secrets_in_place(document: dict[str, Any]) -> int:
    """How many texts sealed with a resource's key are in the fields that the event's type has for them."""
    kind, data = document.get("type"), document["data"]
    fact = FACTS.get(kind) if isinstance(kind, str) else None
    if fact is None or not isinstance(data, dict):
        return 0
    values = (data.get(name) for name in fact.sealed_only)
    return sum(isinstance(each, str) and each.startswith(MARK + RESOURCE) for each in values)


def _lookup(keyring: Keyring, names: set[str]) -> Lookup:
    """Fetch the keys of these names in one request; looking one of them up later does not ask the vault again."""
    keyring.learn(names)
    return lambda name: keyring.known(name) if name in names else keyring.look(name)


def body_opened(sealed: Sealed, look: Lookup, erased: Callable[[str], None] = lambda _place: None) -> bytes:
    """The body with its sealed values opened and without the MAC.

    `erased` is called with the place of each value whose key is destroyed. Raises KeyMissing, SealBroken,
    InvalidPayload.
    """
    position, document, numbers = sealed.event.position, {**sealed.document}, Counter[str]()
    attested = _mac_verifies(sealed, document.pop(ATTRIBUTE, None), look)

    def counts(tombstone: Tombstone, _place: str, _sealed: str) -> bool:
        number = numbers[tombstone.name]
        numbers[tombstone.name] += 1
        return attested or tombstone.unsworn is None or tombstone.unsworn.counts(position, number)

    if not attested and not all(_fits(look(name), position) for name in sealed.names):
        raise InvalidPayload("what is sealed in it did not fit it", errors=[])
    by = stated_by_in(sealed.event.subject)
    document["data"] = open_document(document["data"], look, sealed.id, by=by, vouch=counts, erased=erased)
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError as error:  # an attribute is nested too deeply
        raise InvalidPayload(f"what is sealed in it cannot be opened: {error}", errors=[]) from error


def _mac_verifies(sealed: Sealed, mac: object, look: Lookup) -> bool:
    """Whether the event's MAC verifies; False where there is none to check. Raises KeyMissing, SealBroken (wrong)."""
    if mac is None or not sealed.names:
        return False
    if len(sealed.names) > 1:  # our writers seal all values of an event for the same persons
        raise not_verified()
    (name,) = sealed.names
    held = look(name)
    if held is None:
        raise KeyMissing(f"the vault has no key {name!r}: is it the vault of this ledger?", key=name, place="")
    if held.witness is None:  # a tombstone of an earlier version
        return False
    if not held.witness.vouches(mac, sealed.event.subject, sealed.id, sealed.document["data"]):
        raise not_verified()
    return True


def _fits(held: Held | None, position: int) -> bool:
    return not isinstance(held, Tombstone) or held.unsworn is None or held.unsworn.fits(position)
