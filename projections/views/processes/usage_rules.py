"""Rules of model usage: only a node may publish it, as `user:local`, an actor that the broker grants no client."""

from __future__ import annotations

from kledger.contract.errors import NotOwner
from ledger.privacy.personal import NOBODY
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling


class ModelRules(Rules):
    """The rules of model usage, which need no state."""

    def decide(self, event: Candidate) -> Ruling:
        if event.actor != NOBODY:
            return Ruling(NotOwner.code, f"what a model cost is the node's to say, not {event.actor}'s")
        return ACCEPTED
