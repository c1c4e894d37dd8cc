"""Status of an item: what each event makes of it, and in which status an item takes which event.

Doors ask here before they publish and the gate before it accepts, so that none accepts what the other refuses.
"""

from __future__ import annotations

from collections.abc import Mapping

from kledger.contract.words import ItemStatus
from ledger.event import Fact
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeApproved,
    KnowledgeEvolved,
    KnowledgeExpired,
    KnowledgeMerged,
    KnowledgePromoted,
    KnowledgeRejected,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeShared,
    KnowledgeSuperseded,
    KnowledgeUnmerged,
)

_MAKES: Mapping[type[Fact], ItemStatus] = {
    KnowledgeSaved: "active",
    KnowledgeRetired: "retired",
    KnowledgeRestored: "active",
    KnowledgeMerged: "merged",
    KnowledgeUnmerged: "active",
    KnowledgeExpired: "expired",
    KnowledgeApproved: "active",
    KnowledgeRejected: "rejected",
    KnowledgeSuperseded: "superseded",
}
_STATES_ANEW = (KnowledgeRevised, KnowledgeEvolved, KnowledgeReverted, KnowledgeAbsorbed, KnowledgeShared)
_ACTIVE: tuple[ItemStatus, ...] = ("active",)
_NEEDS: Mapping[type[Fact], tuple[ItemStatus, ...]] = {
    KnowledgeRetired: ("active", "expired", "proposed", "rejected", "superseded"),
    KnowledgeRestored: ("retired", "expired", "superseded"),
    KnowledgeEvolved: _ACTIVE,
    KnowledgeAbsorbed: _ACTIVE,
    KnowledgeMerged: _ACTIVE,
    KnowledgeUnmerged: ("merged",),
    KnowledgePromoted: _ACTIVE,
    KnowledgeExpired: _ACTIVE,
    KnowledgeApproved: ("proposed",),
    KnowledgeRejected: ("proposed",),
    KnowledgeSuperseded: ("active", "proposed"),
}
MAKES: Mapping[str, ItemStatus] = {fact.name: status for fact, status in _MAKES.items()}
"""The status that an item has after an event, by the event's name; after any other, it has the one before."""
STATES_ANEW = frozenset(fact.name for fact in _STATES_ANEW)
"""Events that state anew what an item says, or who reads it: a project's approval was of what it was before."""
IN_FORCE_OR_ASKED = frozenset[ItemStatus]({"active", "proposed", "rejected"})
"""The statuses of which STATES_ANEW makes one out of `active` and `proposed`."""
_NEEDED: Mapping[str, tuple[ItemStatus, ...]] = {fact.name: statuses for fact, statuses in _NEEDS.items()}


def fault_of_status(event: str, item_id: str, status: str) -> str | None:
    """Why an item with this status does not take an event, by the event's name; None where it does."""
    needed = _NEEDED.get(event)
    if needed is None or status in needed:
        return None
    verb = event.partition(".")[2]
    return f"{item_id} is {status}: only what is {' or '.join(needed)} can be {verb}"
