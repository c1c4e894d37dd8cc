"""Rules of model usage: only a node may publish it, as `user:local`, an actor that the broker grants no client."""

from __future__ import annotations

import duckdb

from kledger.contract.errors import NotOwner
from ledger.privacy.personal import NOBODY
from projections.fold_kit.decisions import ACCEPTED, Candidate, Ruling


class ModelRules:
    """The rules of model usage, which need no state."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        """Nothing is looked up."""

    def decide(self, event: Candidate) -> Ruling:
        """Judge one event; see projections.engine.gate.Rules."""
        if event.actor != NOBODY:
            return Ruling(NotOwner.code, f"what a model cost is the node's to say, not {event.actor}'s")
        return ACCEPTED

    def write(self, con: duckdb.DuckDBPyConnection) -> None:
        """Nothing: the events themselves are what there is to know."""
