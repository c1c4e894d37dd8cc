"""Rules of processes: which stage of an evolution, extraction, slim or conflict may follow which.

A process belongs to the actor who began it; only they may publish its stages. An event of an item that names a process
(an evolution that was applied) is no stage: the view shows it, but it decides nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from kledger.contract.errors import IllegalState, NotOwner, UnknownProcess
from ledger.events import FACTS
from ledger.events.process import ProcessFact
from ledger.events.statement import StatementHeld, is_free_for
from projections.fold_kit.decisions import ACCEPTED, Candidate, Rules, Ruling

_FACTS = {name: fact for name, fact in FACTS.items() if issubclass(fact, ProcessFact)}
KINDS = tuple(dict.fromkeys(fact.entity() for fact in _FACTS.values()))


@dataclass(slots=True)
class Process:
    """State of one process."""

    owner: str
    stage: str


class ProcessRules(Rules):
    """The rules over the state of a batch's processes, of all kinds."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:
        rows = con.execute(f"SELECT org, kind, id, owner, stage FROM processes WHERE id IN ({about})").fetchall()
        self._processes = {(org, kind, name): Process(owner, stage) for org, kind, name, owner, stage in rows}

    def decide(self, event: Candidate) -> Ruling:
        fact = _FACTS[event.type]
        key = (event.org, fact.entity(), event.entity_id)
        named = f"the {fact.entity()} {event.entity_id}"
        process = self._processes.get(key)
        if not fact.follows:
            if process is not None:
                return Ruling(IllegalState.code, f"{named} has begun already")
            if event.type == StatementHeld.name and not is_free_for(event.actor, event.org, event.entity_id):
                return Ruling(NotOwner.code, f"{named} has an id that names another owner than {event.actor}")
            self._processes[key] = Process(event.actor, fact.verb())
            return ACCEPTED
        if process is None:
            return Ruling(UnknownProcess.code, f"{named} was never begun")
        if process.owner != event.actor:
            return Ruling(NotOwner.code, f"{named} is {process.owner}'s, not {event.actor}'s")
        if process.stage not in fact.follows:
            return Ruling(
                IllegalState.code,
                f"{named} is {process.stage}, and {fact.verb()} comes after {' or '.join(fact.follows)}",
            )
        if not fact.repeatable:
            process.stage = fact.verb()
        return ACCEPTED
