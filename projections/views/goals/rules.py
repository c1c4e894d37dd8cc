"""Rules of goal events: a goal belongs to its owner, and may be focused any number of times."""

from __future__ import annotations

from kledger.contract.errors import NotOwner
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling


class GoalRules(Rules):
    """What may happen to goals; it needs to know nothing of what happened before."""

    def decide(self, event: Candidate) -> Ruling:
        if event.actor != event.owner:
            return Ruling(NotOwner.code, f"the goal {event.entity_id} is {event.owner}'s, not {event.actor}'s")
        return ACCEPTED
