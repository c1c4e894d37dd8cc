"""Fold of process events: the stage that each process has reached, and the data of each stage.

Processes are few compared with the knowledge they are about: those of a batch are folded one by one, in Python.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import orjson

from ledger.event import Fact
from ledger.events.knowledge import KnowledgeEvolved, KnowledgeReverted
from ledger.events.process import ProcessFact
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Json, Moment, among, literal
from projections.fold_kit.workbench import Facts, Workbench, table_of

_OUTCOMES: dict[type[Fact], tuple[str, str]] = {
    KnowledgeEvolved: ("evolution", "applied"),
    KnowledgeReverted: ("cause", "reverted"),
}
"""Events of an item that end an evolution: the field that names the evolution, and its outcome."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Event:
    """One event for this fold: of a process, or of an item that names one."""

    position: int
    stored_us: int
    fact: type[Fact]
    org: str
    entity_id: str
    actor: str
    event_id: str
    data: dict[str, Any]


@dataclass(slots=True)
class _Process:
    owner: str
    stage: str
    requested_position: int
    requested_event: str
    requested_us: int
    position: int
    updated_us: int
    outcome: str | None = None
    outcome_position: int | None = None
    said: dict[str, Any] = field(default_factory=dict)


def _concerns(fact: type[Fact]) -> bool:
    return issubclass(fact, ProcessFact) or fact in _OUTCOMES


def fold(bench: Workbench, facts: Facts) -> None:
    """Apply the batch's stages and outcomes, in the order of the log."""
    events: list[_Event] = []
    for fact in filter(_concerns, facts):
        rows = bench.rows(f"SELECT position, stored_us, org, entity_id, actor, event_id, data FROM {table_of(fact)}")
        events += [
            _Event(at, us, fact, org, name, actor, event_id, orjson.loads(data))
            for at, us, org, name, actor, event_id, data in rows
        ]
    _apply(bench.con, sorted(events, key=lambda event: event.position))


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Apply the stages and outcomes of a few events."""
    _apply(
        con,
        [
            _Event(
                *(c.position, c.stored_us, type(c.fact), c.org, c.entity_id, c.envelope.actor, c.envelope.id),
                orjson.loads(c.fact.__pydantic_serializer__.to_json(c.fact)),
            )
            for c in counted
            if _concerns(type(c.fact))
        ],
    )


def _apply(con: duckdb.DuckDBPyConnection, events: list[_Event]) -> None:
    if not events:
        return
    processes = _known(con, {name for event in events if (name := _named(event)[2])})
    changed: dict[Key, _Process] = {}
    for event in events:
        key = _named(event)
        process = processes.get(key)
        if issubclass(event.fact, ProcessFact):
            processes[key] = changed[key] = _staged(process, event, event.fact)
        elif process is not None and _is_of(process, event):
            process.outcome, process.outcome_position = _OUTCOMES[event.fact][1], event.position
            process.position, process.updated_us = event.position, event.stored_us
            changed[key] = process
    if changed:
        keys = ", ".join(f"({', '.join(map(literal, key))})" for key in changed)
        con.execute(f"DELETE FROM processes WHERE (org, kind, id) IN ({keys})")
        insert(con, "processes", (_row(key, process) for key, process in changed.items()))


def _named(event: _Event) -> Key:
    """The process that an event is about."""
    if issubclass(event.fact, ProcessFact):
        return event.org, event.fact.entity(), event.entity_id
    return event.org, "evolution", event.data.get(_OUTCOMES[event.fact][0]) or ""


def _is_of(process: _Process, event: _Event) -> bool:
    """Whether the event's item is the one that the evolution is about: an event can name any evolution."""
    return process.owner == event.actor and process.said.get("requested", {}).get("item_id") == event.entity_id


def _staged(process: _Process | None, event: _Event, fact: type[ProcessFact]) -> _Process:
    verb = fact.verb()
    if process is None:
        at, us = event.position, event.stored_us
        process = _Process(event.actor, verb, at, event.event_id, us, at, us)
    process.position, process.updated_us = event.position, event.stored_us
    if not fact.repeatable:
        process.stage = verb
        process.said[verb] = event.data
    return process


def _known(con: duckdb.DuckDBPyConnection, ids: Iterable[str]) -> dict[Key, _Process]:
    rows = con.execute(
        f"""SELECT org, kind, id, owner, stage, requested_position, requested_event, epoch_us(requested_at), position,
            epoch_us(updated_at), outcome, outcome_position, said::VARCHAR FROM processes WHERE id IN ({among(ids)})"""
    ).fetchall()
    return {
        (org, kind, name): _Process(*rest, orjson.loads(said))  # type: ignore[call-arg]  # mypy counts a star as any
        for org, kind, name, *rest, said in rows
    }


def _row(key: Key, process: _Process) -> tuple[Any, ...]:
    return (
        *(*key, process.owner, process.stage, process.outcome, process.outcome_position),
        Json(orjson.dumps(process.said).decode()),
        *(process.requested_position, process.requested_event, Moment(process.requested_us)),
        *(process.position, Moment(process.updated_us)),
    )
