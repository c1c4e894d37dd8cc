"""Events as a node appends them that belong to persons."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.event import NewEvent
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.vault import DataKey


def sealed_event(event: NewEvent, keys: Sequence[DataKey]) -> NewEvent:
    """The event that is sealed with all of these keys when it is encoded; unchanged without keys."""
    return event.sealed_by(EventSeal(tuple(keys))) if keys else event
