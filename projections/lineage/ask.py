"""Where did a fact come from, and what came of it? Links between events, both ways (mission L3).

A link is an event that names a reference: `trace:T`, `message:M`, `event:E`, `correlation:C`, `resource:R`.
From an item the question runs up to what its events named, and down to what named its events.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from ledger.event import FROM, JsonObject
from ledger.scopes import Caller
from projections.knowledge.ask import LISTED, listed, parsed, readable_by, rfc3339

PREFIXES = ("trace:", "message:", "event:", "correlation:", "resource:")
MAX_STEPS = 64
"""How many causes in a row are followed; a longer chain is asked on from its last event."""
MAX_EDGES = 10_000
_NAMES = (
    *("direction", "relation", "ref", "event_id", "event_type"),
    *("entity", "entity_id", "position", "time"),
)
_PARTS = ", ".join(f"CAST(e.data->'$.{part}' AS VARCHAR)" for part in FROM)


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
    cursor: duckdb.DuckDBPyConnection, org: str, actors: Collection[str], event_ids: Sequence[str]
) -> dict[str, KeptEvent]:
    """The events out of `event_ids` that the view has of these actors, by id; another's of such an id is no answer."""
    rows = cursor.execute(
        f"""SELECT event_id, type, entity_id, position FROM events
            WHERE org = ? AND event_id IN ({LISTED}) AND actor IN ({LISTED})""",
        [org, listed(event_ids), listed(sorted(actors))],
    ).fetchall()
    return {row[0]: KeptEvent(*row) for row in rows}


def _edges(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> list[JsonObject]:
    """The links around `ref` (an item's id, or a reference), in the order of the log, at most MAX_EDGES.

    `from`: what its events named, and on up from cause to cause; `ref` is what is named. `to`: the events that
    name it, and on down to what those `caused`; `ref` is what they are about. A recall that served an item
    has a `served` link to it. Each is told only when the caller may read what its event is about. `stated_in` says
    where a trace or message is named: in which parts of the event's data, else in its envelope.
    """
    own, own_values = _events_of(org, ref)
    may, may_values = _readable_events(org, caller)
    rows = cursor.execute(
        f"""
        WITH RECURSIVE own AS ({own}),
        up AS (
            SELECT position, 0 AS step FROM own
            UNION
            SELECT e.position, up.step + 1 FROM up JOIN lineage AS l ON l.position = up.position
                JOIN events AS e ON e.event_id = substr(l.ref, 7) AND e.org = l.org
            WHERE l.org = ? AND l.relation = 'caused_by' AND up.step < ?
        ),
        down AS (
            SELECT position, event_id, relation, 1 AS step FROM lineage
            WHERE org = ? AND (ref = ? OR ref IN (SELECT 'event:' || event_id FROM own))
            UNION
            SELECT l.position, l.event_id, 'caused', down.step + 1
            FROM lineage AS l JOIN down ON l.ref = 'event:' || down.event_id
            WHERE l.org = ? AND l.relation = 'caused_by' AND down.step < ?
        ),
        found AS (
            SELECT 'from' AS direction, l.relation, l.ref, l.position
            FROM lineage AS l WHERE l.position IN (SELECT position FROM up) AND l.org = ? AND l.ref <> ?
                AND (NOT ? OR l.relation IN ('trace', 'correlation'))
            UNION
            SELECT 'to', relation, NULL, position FROM down
        )
        SELECT f.direction, f.relation, coalesce(f.ref, e.entity_id), e.event_id, e.type, e.entity, e.entity_id,
            e.position, epoch_us(e.stream_time),
            CASE WHEN f.relation IN ('trace', 'message') THEN [{_PARTS}] END
        FROM found AS f JOIN events AS e ON e.position = f.position
        WHERE e.org = ? AND {may}
        ORDER BY e.position, f.direction, f.relation, f.ref LIMIT {MAX_EDGES}
        """,
        [
            *own_values,
            *(org, MAX_STEPS),
            *(org, ref, org, MAX_STEPS),
            *(org, ref, ref.startswith("message:")),
            org,
            *may_values,
        ],
    ).fetchall()
    return [_edge(ref, row[:-1], row[-1]) for row in rows]


def _edge(asked: str, row: Sequence[Any], parts: Sequence[str | None] | None) -> JsonObject:
    """A link as it is told. `parts` are those of its event's data that may name a trace or a message."""
    told = {**dict(zip(_NAMES, row, strict=True)), "time": rfc3339(row[-1])}
    if parts is None:
        return told
    relation = told["relation"]
    name = (told["ref"] if told["direction"] == "from" else asked).removeprefix(f"{relation}:")
    said = [part for part, text in zip(FROM, parts, strict=True) if (parsed(text) or {}).get(f"{relation}_id") == name]
    return told | {"stated_in": said or ["envelope"]}


def _is_known(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> bool:
    """True when `ref` is an item or an event that the caller may read, though nothing may link to it."""
    own, own_values = _events_of(org, ref)
    may, may_values = _readable_events(org, caller)
    found = cursor.execute(
        f"SELECT 1 FROM ({own}) AS own JOIN events AS e ON e.position = own.position WHERE e.org = ? AND {may} LIMIT 1",
        [*own_values, org, *may_values],
    ).fetchone()
    return found is not None


def links(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> list[JsonObject] | None:
    """The links around `ref` (see _edges); None when nothing that the caller may read names it."""
    found = _edges(cursor, org, caller, ref)
    return found if found or _is_known(cursor, org, caller, ref) else None


def refused_count(cursor: duckdb.DuckDBPyConnection) -> int:
    """How many events of the log do not count."""
    found = cursor.execute("SELECT count(*) FROM refused_events").fetchone()
    return 0 if found is None else int(found[0])


def _events_of(org: str, ref: str) -> tuple[str, list[str]]:
    """The events that `ref` itself stands for: those of an item, one event, or those that bear a message."""
    kind, _, name = ref.partition(":")
    if kind == "event":
        return "SELECT position, event_id FROM events WHERE org = ? AND event_id = ?", [org, name]
    if kind == "message":  # a message is of a trace: the events that bear both say of which
        return "SELECT position, event_id FROM lineage WHERE org = ? AND ref = ?", [org, ref]
    if ref.startswith(PREFIXES):
        return "SELECT position, event_id FROM events WHERE FALSE", []
    return "SELECT position, event_id FROM events WHERE org = ? AND entity = 'knowledge' AND entity_id = ?", [org, ref]


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
