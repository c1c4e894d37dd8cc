"""Where did a fact come from, and what came of it? Links between events, both ways (mission L3).

A link is an event that names a reference: `trace:T`, `message:M`, `event:E`, `correlation:C`, `resource:R`.
From an item the question runs up to what its events named, and down to what named its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
import duckdb

from ledger.event import JsonObject
from ledger.scopes import Caller
from projections.knowledge.ask import readable_by, rfc3339

PREFIXES = ("trace:", "message:", "event:", "correlation:", "resource:")
MAX_STEPS = 64
"""How many causes in a row are followed; a longer chain is asked on from its last event."""
MAX_EDGES = 10_000


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event that the view has."""

    event_id: str
    type: str
    entity_id: str
    position: int


def position_at(cursor: duckdb.DuckDBPyConnection, moment: datetime) -> tuple[int, bool]:
    """The position of the last event that the stream kept up to `moment`, 0 when there was none.

    The second is true when no later event is folded, so that the answer may still grow.
    """
    microseconds = int(moment.timestamp() * 1_000_000)
    found = cursor.execute(
        """SELECT coalesce(max(position) FILTER (epoch_us(stream_time) <= ?), 0),
               coalesce(max(epoch_us(stream_time)), 0) <= ? FROM events""",
        [microseconds, microseconds],
    ).fetchone()
    assert found is not None  # an aggregate has a row
    return found[0], found[1]


def kept_events(
    cursor: duckdb.DuckDBPyConnection, org: str, event_ids: Sequence[str]
) -> dict[str, KeptEvent]:
    """The events out of `event_ids` that the view has, by id."""
    rows = cursor.execute(
        """SELECT event_id, type, entity_id, position FROM events
           WHERE org = ? AND event_id IN (SELECT unnest(?::VARCHAR[]))""",
        [org, list(event_ids)],
    ).fetchall()
    return {row[0]: KeptEvent(*row) for row in rows}


def edges(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> list[JsonObject]:
    """The links around `ref` (an item's id, or a reference), in the order of the log, at most MAX_EDGES.

    `from`: what `ref` came from; `to`: what named it, and on down from event to event. Each is told only when
    the caller may read what the event is about. An item that recalls have served has `served` links to them.
    """
    own, own_values = _events_of(org, ref)
    may, may_values = _readable_events(org, caller)
    rows = cursor.execute(
        f"""
        WITH RECURSIVE own AS ({own}),
        up AS (
            SELECT 'from' AS direction, l.relation, l.ref, l.event_id
            FROM lineage AS l JOIN own ON l.event_id = own.event_id
            WHERE l.org = ? AND l.ref <> ? AND (NOT ? OR l.relation IN ('trace', 'correlation'))
        ),
        down AS (
            SELECT l.relation, l.ref, l.event_id, 1 AS step FROM lineage AS l
            WHERE l.org = ? AND (l.ref = ? OR l.ref IN (SELECT 'event:' || own.event_id FROM own))
            UNION
            SELECT l.relation, l.ref, l.event_id, down.step + 1
            FROM lineage AS l JOIN down ON l.ref = 'event:' || down.event_id
            WHERE l.org = ? AND l.relation = 'caused_by' AND down.step < ?
        ),
        served AS (
            SELECT 'to' AS direction, 'served' AS relation, r.item_id AS ref, e.event_id
            FROM recalls AS r JOIN events AS e ON e.position = r.position
            WHERE r.org = ? AND r.item_id = ?
        ),
        found AS (
            FROM up UNION SELECT 'to', relation, ref, event_id FROM down UNION FROM served
        )
        SELECT f.direction, f.relation, f.ref, e.event_id, e.type, e.entity, e.entity_id, e.position,
            epoch_us(e.time)
        FROM found AS f JOIN events AS e ON e.event_id = f.event_id
        WHERE e.org = ? AND {may}
        ORDER BY e.position, f.direction, f.relation, f.ref LIMIT {MAX_EDGES}
        """,
        [*own_values, org, ref, ref.startswith("message:"), org, ref, org, MAX_STEPS, org, ref, org, *may_values],
    ).fetchall()
    names = [
        "direction",
        "relation",
        "ref",
        "event_id",
        "event_type",
        "entity",
        "entity_id",
        "position",
        "time",
    ]
    return [{**dict(zip(names, row, strict=True)), "time": rfc3339(row[-1])} for row in rows]


def is_known(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> bool:
    """True when `ref` is an item or an event that the caller may read, though nothing may link to it."""
    own, own_values = _events_of(org, ref)
    may, may_values = _readable_events(org, caller)
    found = cursor.execute(
        f"SELECT 1 FROM ({own}) AS own JOIN events AS e ON e.event_id = own.event_id WHERE e.org = ? AND {may} LIMIT 1",
        [*own_values, org, *may_values],
    ).fetchone()
    return found is not None


def _events_of(org: str, ref: str) -> tuple[str, list[str]]:
    """The events that `ref` itself stands for: those of an item, one event, or those that bear a message."""
    kind, _, name = ref.partition(":")
    if kind == "event":
        return "SELECT event_id FROM events WHERE org = ? AND event_id = ?", [org, name]
    if kind == "message":  # a message is of a trace: the events that bear both say of which
        return "SELECT event_id FROM lineage WHERE org = ? AND ref = ?", [org, ref]
    if ref.startswith(PREFIXES):
        return "SELECT event_id FROM events WHERE FALSE", []
    return "SELECT event_id FROM events WHERE org = ? AND entity = 'knowledge' AND entity_id = ?", [org, ref]


def _readable_events(org: str, caller: Caller) -> tuple[str, list[str]]:
    """The predicate over `events AS e` of what the caller may know of; the operator of all."""
    if caller.is_operator:
        return "TRUE", []
    may, values = readable_by(caller, "k.")
    entities = caller.entities()
    marks = ", ".join("?" * len(entities))
    return (
        f"""CASE e.entity
            WHEN 'knowledge' THEN e.entity_id IN (SELECT k.id FROM knowledge AS k WHERE k.org = ? AND {may})
            ELSE e.actor IN ({marks}) END""",
        [org, *values, *entities],
    )
