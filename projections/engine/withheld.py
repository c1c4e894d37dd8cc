"""How does a parked event stay out of the folds, and in `refused_events`? It is shown to them as one that says nothing.

Its place in the batch stays, so that positions stay consecutive; what decoding then says of the empty event is
replaced by the event itself with the reason that it was parked for.
"""

from __future__ import annotations

from kledger.contract.errors import UnfoldableEvent
from ledger.event import StoredEvent
from ledger.store.parked import Parked, fingerprint_of
from projections.fold_kit.decisions import Refusal


def withhold(events: list[StoredEvent], parked: Parked) -> list[StoredEvent]:
    """The events, with nothing in those that are parked. A decision about another event at that position is none."""
    if not parked:
        return events
    return [event._replace(subject="", body=b"") if _is_parked(event, parked) else event for event in events]


def named(refusals: list[Refusal], events: list[StoredEvent], parked: Parked) -> list[Refusal]:
    """The refusals of the events as they are: consecutive `events`, of which `refusals` saw those withheld."""
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
