"""Parked events in a batch: blanked before decoding, so that they are refused and never folded.

A blanked event keeps its place, so that positions stay consecutive. The refusal of the blank event is then replaced by
one of the event itself, with the reason for which it was parked.
"""

from __future__ import annotations

from collections.abc import Sequence

from kledger.contract.errors import UnfoldableEvent
from ledger.event import StoredEvent
from ledger.store.parked import Parked, fingerprint_of
from projections.fold_kit.decisions import Refusal


def withhold(events: list[StoredEvent], parked: Parked) -> list[StoredEvent]:
    """The events, the parked ones blanked. A decision about another event at the same position does not apply."""
    if not parked:
        return events
    return [event._replace(subject="", body=b"") if _is_parked(event, parked) else event for event in events]


def named(refusals: list[Refusal], events: Sequence[StoredEvent], parked: Parked) -> list[Refusal]:
    """The refusals, with those of blanked events replaced; `events` are consecutive and as the log has them."""
    if not parked:
        return refusals
    first = events[0].position
    return [
        Refusal(event, UnfoldableEvent.code, parked[event.position].reason)
        if _is_parked(event := events[refusal.event.position - first], parked)
        else refusal
        for refusal in refusals
    ]


def _is_parked(event: StoredEvent, parked: Parked) -> bool:
    decision = parked.get(event.position)
    return decision is not None and decision.fingerprint == fingerprint_of(event)
