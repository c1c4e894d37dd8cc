"""May this happen to this item? The decider of knowledge events: state, decide, evolve."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.errors import IllegalState, KnowledgeExists, NotOwner, UnknownKnowledge, VersionConflict
from projections.ruling import ACCEPTED, Candidate, Ruling
from projections.workbench import Workbench


@dataclass(slots=True)
class Item:
    """What the rules need to know of one item."""

    owner: str
    version: int
    active: bool
    version_position: int


_STATE = """
SELECT s.org, s.id, s.owner, s.version, s.status = 'active', s.version_position
FROM knowledge_state s
WHERE s.id IN (SELECT substr(about, 11) FROM envelopes WHERE starts_with(about, 'knowledge/'))
"""
_OWNERS_ALONE = frozenset({"knowledge.revised", "knowledge.retired", "knowledge.restored"})


class KnowledgeRules:
    """The items that a batch is about, and what may happen to them next."""

    def __init__(self, bench: Workbench) -> None:
        self.items: dict[tuple[str, str], Item] = {
            (org, item_id): Item(owner, version, active, position)
            for org, item_id, owner, version, active, position in bench.rows(_STATE)
        }

    def decide(self, org: str, entity_id: str, event: Candidate) -> Ruling:
        """Judge one event in stream order; see projections.gate.Rules."""
        item = self.items.get((org, entity_id))
        kind = event.type
        if kind == "knowledge.saved":
            if item is not None:
                return Ruling(KnowledgeExists.code, f"{entity_id} is there already; revise it instead")
            owner = event.owner or event.actor
            if owner != event.actor:
                return Ruling(NotOwner.code, f"{event.actor} may not save what {owner} is to own")
            self.items[org, entity_id] = Item(owner, 1, True, event.position)
            return Ruling(version=1)
        if item is None:
            return Ruling(UnknownKnowledge.code, f"there is no item {entity_id} to be {kind.partition('.')[2]}")
        if kind in _OWNERS_ALONE and event.actor != item.owner:
            return Ruling(NotOwner.code, f"{entity_id} is owned by {item.owner}, not by {event.actor}")
        if kind == "knowledge.rated":
            return ACCEPTED
        if kind == "knowledge.retired" and not item.active:
            return Ruling(IllegalState.code, f"{entity_id} is retired already")
        if kind == "knowledge.restored" and item.active:
            return Ruling(IllegalState.code, f"{entity_id} is active: there is nothing to restore")
        if event.expected_version is not None and event.expected_version != item.version:
            return Ruling(
                VersionConflict.code,
                f"{entity_id} is at version {item.version}, the revision expected {event.expected_version}",
            )
        closes = item.version_position
        item.version += 1
        item.version_position = event.position
        if kind == "knowledge.retired":
            item.active = False
        elif kind == "knowledge.restored":
            item.active = True
        elif event.owner is not None:
            item.owner = event.owner
        return Ruling(version=item.version, closes=closes)
