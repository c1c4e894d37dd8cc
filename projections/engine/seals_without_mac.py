"""Examination of seals without a MAC: which of a person's seals verify, recorded before the key is destroyed.

Earlier versions sealed without a MAC. After the key is gone nothing else could tell a genuine seal from a forged one,
so the log is read once before the key is destroyed, and the tombstone keeps the result.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable

from kledger.contract.errors import InvalidPayload, KeyMissing, LedgerError, SealBroken
from ledger.event import StoredEvent
from ledger.privacy.sealed import Lookup, may_be_sealed, open_document, opened
from ledger.privacy.vault import Tombstone
from ledger.wire.seal_mac import ATTRIBUTE, UNFIT, Unsworn
from ledger.wire.subjects import stated_by_in
from projections.engine.model_check import validated
from projections.engine.unsealing import Sealed, body_opened, sealed_in


class Examination:
    """Verifies one person's seals that have no MAC, event by event from the start of the log.

    `look` has to find the person's key.
    """

    def __init__(self, name: str, look: Lookup) -> None:
        self._name, self._look = name, look
        self._until = 0
        self._broken: dict[int, int] = {}
        self._forged = array("q")  # forged from the first value on; compact, as anybody may publish many

    @property
    def found(self) -> Unsworn:
        """The result so far. Events that are wholly forged, after the last one that verifies, are left out."""
        forged = self._forged[: bisect_right(self._forged, self._until)]
        return Unsworn(self._until, {**self._broken, **dict.fromkeys(forged, 0)})

    def read(self, events: Iterable[StoredEvent]) -> None:
        """Examine the next events of the log. Raises what `look` raises."""
        for event in events:
            if not may_be_sealed(event.body):
                continue
            try:
                sealed = sealed_in(event)
            except (InvalidPayload, SealBroken):  # refused in any case
                continue
            if sealed is None or self._name not in sealed.names or ATTRIBUTE in sealed.document:
                continue
            verdict = _verdict(sealed, self._name, self._look)
            if verdict == 0:
                self._forged.append(event.position)
            elif verdict is not None:
                self._broken[event.position] = verdict
            if verdict is None or verdict == UNFIT:
                self._until = event.position


def _verdict(sealed: Sealed, name: str, look: Lookup) -> int | None:
    """None when the person's seals verify, else the event's value in `Unsworn.broken`."""
    by = stated_by_in(sealed.event.subject)
    verified: list[bool] = []

    def verify(gone: Tombstone, place: str, text: str) -> bool:
        if gone.name == name:
            verified.append(_verifies(text, look, sealed.id, place, by))
        return True

    open_document(sealed.document["data"], _gone, sealed.id, vouch=verify)
    if not all(verified):
        return verified.index(False)
    try:
        body = body_opened(sealed, look)
    except (KeyMissing, SealBroken, InvalidPayload):  # because of another person's seal
        return None
    erased = body_opened(sealed, lambda key: _gone(name) if key == name else look(key))
    return UNFIT if _refused(sealed, body) and not _refused(sealed, erased) else None


def _verifies(text: str, look: Lookup, event_id: str, place: str, by: str) -> bool:
    try:
        opened(text, look, event_id, place, by)
    except (KeyMissing, SealBroken):
        return False
    return True


def _gone(name: str) -> Tombstone:
    return Tombstone(name, "", "", "")


def _refused(sealed: Sealed, body: bytes) -> bool:
    try:
        validated(sealed.event._replace(body=body))
    except LedgerError:
        return True
    return False
