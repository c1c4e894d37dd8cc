"""How does a batch read what is sealed? Once, before it is decoded; what cannot be opened is refused.

The words of a person whose key is destroyed become the fallback, `"[erased]"` or `{}`: the same log with the same
vault gives the same views. What is refused for any reason keeps the bytes that the log has.

A seal whose key the vault does not have is refused as one that does not verify. The key may come later, of a person who
was named before it was theirs; then a replay, which has it, has to give the same reason.

The vault is asked for the keys of whole sealed values alone, and for a bounded number of well-formed names an event:
what an event states can have that event refused, and never makes a question that the vault cannot answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson
import structlog

from ledger.errors import IllegalSubject, InvalidPayload, KeyMissing, LedgerError, SealBroken
from ledger.event import StoredEvent
from ledger.keyring import Keyring
from ledger.sealed import HINT, USER, Lookup, name_in, not_verified, open_document, sealed_values
from ledger.subjects import decode_token, stated_by_in
from projections.ruling import Refusal

log = structlog.get_logger(__name__)

MOST_NAMES = 4
"""Persons that the sealed values of one event may name. Our writers name one: the last of those it belongs to."""

_FORGOTTEN = ".subject."
# Never JSON, so that decoding refuses it whatever road it takes; the reason is then told by `told`.
_UNREADABLE = b""


@dataclass(frozen=True, slots=True)
class Opened:
    """A batch ready to be decoded, and (code, reason) of each position that could not be opened."""

    events: list[StoredEvent]
    stored: list[StoredEvent]
    failed: dict[int, tuple[str, str]]

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
class _Sealed:
    """An event that holds sealed values: its number in the batch, its document, and the persons' keys it names."""

    at: int
    document: dict[str, Any]
    names: set[str]


def open_events(keyring: Keyring, events: list[StoredEvent]) -> Opened:
    """Open what is sealed in consecutive events.

    Raises what the vault raises (BrokerUnavailable, WrongMasterKey): then nothing may be folded. What an event states
    raises nothing.
    """
    for event in events:
        if _FORGOTTEN in event.subject:
            _notice(keyring, event.subject)
    opened, sealed, failed = list(events), list[_Sealed](), dict[int, tuple[str, str]]()

    def fails(at: int, error: LedgerError) -> None:
        failed[events[at].position] = (error.code, error.message)
        opened[at] = events[at]._replace(body=_UNREADABLE)

    for at, event in enumerate(events):
        if HINT not in event.body:
            continue
        try:
            found = _sealed(at, event.body)
        except (InvalidPayload, SealBroken) as error:
            fails(at, error)
        else:
            sealed += [found] if found is not None else []
    if not sealed and not failed:
        return Opened(events, events, {})
    look = _asked(keyring, {name for each in sealed for name in each.names})
    missing = dict[str, int]()
    for each in sealed:
        try:
            opened[each.at] = events[each.at]._replace(
                body=_opened(each.document, look, stated_by_in(events[each.at].subject))
            )
        except KeyMissing as error:
            missing.setdefault(str(error.details["key"]), events[each.at].position)
            fails(each.at, not_verified(str(error.details["place"])))
        except (InvalidPayload, SealBroken) as error:
            fails(each.at, error)
    if missing:
        log.warning(
            "events are refused whose keys the vault does not have: is it the vault of this ledger?",
            keys=len(missing),
            one=next(iter(missing)),
            first=min(missing.values()),
        )
    return Opened(opened, events, failed)


def _notice(keyring: Keyring, subject: str) -> None:
    """Another node may have destroyed a key that this one knows: the vault is asked again."""
    tokens = subject.split(".")
    if len(tokens) == 7 and tokens[2] == "subject":
        with contextlib.suppress(IllegalSubject):  # decoding refuses it, with the reason
            keyring.forget(decode_token(tokens[3]))


def _sealed(at: int, body: bytes) -> _Sealed | None:
    """The event's sealed values; None where it has none. Raises InvalidPayload, SealBroken."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None  # decoding says what is wrong with it
    if not isinstance(document, dict) or "data" not in document:
        return None
    names = set[str]()
    found = False
    for value in sealed_values(document["data"]):
        found = True
        if (name := name_in(value)).startswith(USER):  # what is a resource's stays sealed
            names.add(name)
        if len(names) > MOST_NAMES:
            raise InvalidPayload(
                f"its sealed values name more than {MOST_NAMES} persons: seal all of an event for the same ones",
                errors=[],
            )
    return _Sealed(at, document, names) if found else None


def _asked(keyring: Keyring, names: set[str]) -> Lookup:
    """Ask for these names at once; who looks for one of them again does not ask anew, whether it has a key or none."""
    keyring.learn(names)
    return lambda name: keyring.known(name) if name in names else keyring.look(name)


def _opened(document: dict[str, Any], look: Lookup, by: str) -> bytes:
    document["data"] = open_document(document["data"], look, str(document.get("id")), by=by)
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError as error:  # an attribute nested without end
        raise InvalidPayload(f"what is sealed in it cannot be opened: {error}", errors=[]) from error
