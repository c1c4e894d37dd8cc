"""Which seals without a MAC verify? It is found out while their key is there, to be the same when it is gone.

Earlier versions sealed without a MAC. The log is read once for them, before a person's key is destroyed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable

from kledger.contract.errors import InvalidPayload, KeyMissing, LedgerError, SealBroken
from ledger.event import StoredEvent
from ledger.privacy.seal_witness import ATTRIBUTE, UNFIT, Unsworn
from ledger.privacy.sealed import Lookup, may_be_sealed, open_document, opened
from ledger.privacy.vault import Tombstone
from ledger.wire.subjects import stated_by_in
from projections.engine.model_check import judged
from projections.engine.unsealing import Sealed, body_opened, sealed_in


class Examination:
    """Finds out which seals of one person verify that no MAC bears out, event by event of the log from its start.

    `look` has to know the person's key.
    """

    def __init__(self, name: str, look: Lookup) -> None:
        self._name, self._look = name, look
        self._until = 0
        self._broken: dict[int, int] = {}
        self._forged = array("q")  # forged from the first value on: of these anybody may publish many

    @property
    def found(self) -> Unsworn:
        """What was found so far. Nothing is said of what is forged altogether after the last that verifies."""
        forged = self._forged[: bisect_right(self._forged, self._until)]
        return Unsworn(self._until, {**self._broken, **dict.fromkeys(forged, 0)})

    def read(self, events: Iterable[StoredEvent]) -> None:
        """Examine the next events of the log. Raises what `look` raises."""
        for event in events:
            if not may_be_sealed(event.body):
                continue
            try:
                sealed = sealed_in(event)
            except (InvalidPayload, SealBroken):  # refused whatever the vault has
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
    """None when the person's seals verify, else what `Unsworn.broken` says of the event."""
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
    except (KeyMissing, SealBroken, InvalidPayload):  # because of somebody else's
        return None
    erased = body_opened(sealed, lambda asked: _gone(name) if asked == name else look(asked))
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
        judged(sealed.event._replace(body=body))
    except LedgerError:
        return True
    return False
