"""Rules of goal events: a goal belongs to its owner, and may be focused any number of times."""

from __future__ import annotations

import duckdb

from kledger.contract.errors import NotOwner
from projections.fold_kit.decisions import ACCEPTED, Candidate, Ruling


class GoalRules:
    """What may happen to goals; it needs to know nothing of what happened before."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        pass

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see projections.engine.gate.Rules."""
        if event.actor != event.owner:
            return Ruling(NotOwner.code, f"the goal {event.entity_id} is {event.owner}'s, not {event.actor}'s")
        return ACCEPTED

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Nothing: the fold appends what there is to know."""
