"""Rules of scope types: only the operator registers them, and none replaces a built-in one."""

from __future__ import annotations

from kledger.contract.errors import IllegalScope, NotOwner
from kledger.contract.scopes import PRIORITY
from ledger.privacy.personal import NOBODY
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling


class ScopeTypeRules(Rules):
    """The rules of registrations, which need no state."""

    def decide(self, event: Candidate) -> Ruling:
        if event.actor != NOBODY:
            return Ruling(NotOwner.code, f"types of scopes are the operator's to register, not {event.actor}'s")
        if event.entity_id in PRIORITY:
            return Ruling(IllegalScope.code, f"{event.entity_id} is built in and keeps its priority")
        return ACCEPTED
