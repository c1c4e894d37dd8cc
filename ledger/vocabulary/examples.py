"""Example events: one for each event name, made of the example that stands beside its class.

They are in the generated reference and in the AsyncAPI document, so that readers copy examples that work.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from ledger.event import Fact, Lineage, NewEvent
from ledger.events import FACTS
from ledger.events.examples import MESSAGE, TRACE
from ledger.named_ids import named_id

_IDS = uuid.UUID("3f2b8c1e-0000-4000-8000-000000000000")


def _event(fact: type[Fact]) -> NewEvent:
    """The example with a fixed id and time, so that generated documents change only with the code."""
    example = fact.example
    if unknown := example.data.keys() - fact.model_fields.keys():
        raise ValueError(f"the example of {fact.name} has the field {min(unknown)!r}, which the event has not")
    return NewEvent(
        fact=fact(**example.data),
        entity_id=example.entity_id,
        actor=example.actor,
        lineage=Lineage(trace_id=TRACE, message_id=MESSAGE),
        source="urn:example:research_agent",
        id=named_id(_IDS, fact.name),
        time=datetime(2026, 3, 5, 12, tzinfo=UTC),
    )


EXAMPLES: Mapping[str, NewEvent] = {name: _event(fact) for name, fact in FACTS.items()}
"""By event name."""
