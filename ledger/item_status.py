"""Status of an item: what each event makes of it, and in which status an item takes which event.

Doors ask here before they publish and the gate before it accepts, so that none accepts what the other refuses. Each
event states its own (ledger/events/knowledge.py:ItemFact).
"""

from __future__ import annotations

from collections.abc import Mapping

from kledger.contract.words import ItemStatus
from ledger.events.knowledge import FACTS

MAKES: Mapping[str, ItemStatus] = {fact.name: fact.makes for fact in FACTS if fact.makes is not None}
"""The status that an item has after an event, by the event's name; after any other, it has the one before."""
STATES_ANEW = frozenset(fact.name for fact in FACTS if fact.states_anew)
"""Events after which what a project shares waits for approval."""
IN_FORCE_OR_ASKED = frozenset[ItemStatus]({"active", "proposed", "rejected"})
"""The statuses of which STATES_ANEW makes one out of `active` and `proposed`."""
_TAKEN_IN: Mapping[str, tuple[ItemStatus, ...]] = {fact.name: fact.taken_in for fact in FACTS if fact.taken_in}


def fault_of_status(event: str, item_id: str, status: str) -> str | None:
    """Why an item with this status does not take an event, by the event's name; None where it does."""
    taken_in = _TAKEN_IN.get(event)
    if taken_in is None or status in taken_in:
        return None
    verb = event.partition(".")[2]
    return f"{item_id} is {status}: only what is {' or '.join(taken_in)} can be {verb}"
