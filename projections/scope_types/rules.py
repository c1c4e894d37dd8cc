"""May this type of scope be registered? By the operator alone, and never in place of a built-in one (mission S4)."""

from __future__ import annotations

import duckdb

from ledger.errors import IllegalScope, NotOwner
from ledger.personal import NOBODY
from ledger.scopes import PRIORITY
from projections.ruling import ACCEPTED, Candidate, Ruling


class ScopeTypeRules:
    """What may be registered; it depends on nothing that was said before."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        """Nothing is looked up."""

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see projections.gate.Rules."""
        if event.actor != NOBODY:
            return Ruling(NotOwner.code, f"types of scopes are the operator's to register, not {event.actor}'s")
        if event.entity_id in PRIORITY:
            return Ruling(IllegalScope.code, f"{event.entity_id} is built in and keeps its priority")
        return ACCEPTED

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Nothing: the fold keeps what is registered."""
