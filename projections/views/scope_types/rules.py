"""Rules of scope types: only the operator registers them, and none replaces a built-in one."""

from __future__ import annotations

import duckdb

from kledger.contract.errors import IllegalScope, NotOwner
from kledger.contract.scopes import PRIORITY
from ledger.privacy.personal import NOBODY
from projections.fold_kit.decisions import ACCEPTED, Candidate, Ruling


class ScopeTypeRules:
    """The rules of registrations, which need no state."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        """Nothing is looked up."""

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see projections.engine.gate.Rules."""
        if event.actor != NOBODY:
            return Ruling(NotOwner.code, f"types of scopes are the operator's to register, not {event.actor}'s")
        if event.entity_id in PRIORITY:
            return Ruling(IllegalScope.code, f"{event.entity_id} is built in and keeps its priority")
        return ACCEPTED

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Nothing: the fold keeps what is registered."""
