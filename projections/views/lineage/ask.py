"""Queries of lineage: links between events, in both directions.

A link is an event that names a reference: `trace:T`, `message:M`, `event:E`, `correlation:C`, `resource:R`.
From an item, the query walks up to what its events named, and down to what named its events.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import orjson

from kledger.contract.scopes import Caller
from ledger import one_answer
from ledger.event import FROM, JsonObject
from ledger.events.knowledge import KnowledgeScored
from ledger.events.recall import RecallServed
from projections.fold_kit.erased import NOTHING, Places, places_of, within
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, bytes_of, fitting_rows
from projections.fold_kit.sql_text import among, among_numbers
from projections.views.access import LISTED, listed, readable_by
from projections.views.feedback.ask import told_to
from projections.views.knowledge.ask import MOST_TASK, parsed
from projections.views.lineage.roles import ABOVE, BELOW, MAX_STEPS, OWN, around, role_of
from projections.views.times import with_times

MAX_EDGES = 10_000
"""Links, and events, in one answer."""
_CASE = ("task", "query", "outcome", "reason")
_SCORE = f"CASE s.type WHEN '{KnowledgeScored.name}' THEN (s.data->>'$.score')::INTEGER END"
_EVENTS = Measured("other_events", "strlen(data::VARCHAR)", "position")
_CASE_COLUMNS = "task AS case_task, query, outcome, reason"
_CASE_NAMES = ("case_task", "query", "outcome", "reason")
_PARTS = ", ".join(f"CAST(s.data->'$.{part}' AS VARCHAR)" for part in FROM)


@dataclass(frozen=True, slots=True)
class KeptEvent:
    """An event that the view has."""

    event_id: str
    type: str
    entity_id: str
    position: int


@dataclass(frozen=True, slots=True)
class StatedEvent(KeptEvent):
    """An event that the view has, with its data and the places in it that were erased."""

    data: JsonObject
    erased: Places = NOTHING

    def erases(self, field: str) -> bool:
        """Whether this field was erased, so that it cannot be compared."""
        return within(self.erased, field)


def position_at(cursor: duckdb.DuckDBPyConnection, moment: datetime) -> tuple[int, bool]:
    """The position before the first event that the stream stored after `moment`, as the macro position_of has it.

    The second value is true when no later event is folded yet, so that the position may still grow.
    """
    row = cursor.execute(
        """SELECT min(position) FILTER (epoch_us(stream_time) > ?) - 1, coalesce(max(position), 0) FROM events""",
        [int(moment.timestamp() * 1_000_000)],
    ).fetchone()
    assert row is not None  # an aggregate has a row
    before_later, last = row
    return (last, True) if before_later is None else (before_later, False)


def time_of(cursor: duckdb.DuckDBPyConnection, position: int) -> datetime | None:
    """When the stream stored the last accepted event up to a position; None where there is none."""
    row = cursor.execute(f"SELECT epoch_us(max(stream_time)) FROM events WHERE position <= {int(position)}").fetchone()
    return None if row is None or row[0] is None else datetime.fromtimestamp(row[0] / 1e6, UTC)


def kept_events(
    cursor: duckdb.DuckDBPyConnection, org: str, actors: Collection[str], event_ids: Sequence[str]
) -> dict[str, KeptEvent]:
    """The events with these ids that the view has of these actors, by id; equal ids of other actors do not count."""
    rows = _with_ids(cursor, "event_id, type, entity_id, position", org, actors, event_ids)
    return {row[0]: KeptEvent(*row) for row in rows}


def stated_events(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    actors: Collection[str],
    event_ids: Sequence[str],
    beginning: str | None = None,
) -> dict[str, StatedEvent]:
    """What `kept_events` has, with the data of each; and the events whose ids have this prefix."""
    columns = "event_id, type, entity_id, position, data::VARCHAR"
    rows = _with_ids(cursor, columns, org, actors, event_ids)
    if beginning is not None:
        rows += cursor.execute(
            f"SELECT {columns} FROM events WHERE org = ? AND starts_with(event_id, ?) AND actor IN ({LISTED})",
            [org, beginning, listed(sorted(actors))],
        ).fetchall()
    erased = places_of(cursor, [row[3] for row in rows])
    return {
        own_id: StatedEvent(own_id, kind, entity_id, position, orjson.loads(data), erased.get(position, NOTHING))
        for own_id, kind, entity_id, position, data in rows
    }


def _with_ids(
    cursor: duckdb.DuckDBPyConnection, columns: str, org: str, actors: Collection[str], event_ids: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Rows of events by id. A write looks for ids that are mostly new: keys scan several times as fast as ids."""
    ids = listed(event_ids)
    keys = f"SELECT position FROM event_keys WHERE key IN (SELECT md5_number_lower(id) FROM ({LISTED}) AS listed(id))"
    positions = [position for (position,) in cursor.execute(keys, [ids]).fetchall()]
    if not positions:
        return []
    return cursor.execute(
        f"""SELECT {columns} FROM events
            WHERE position IN ({among(positions)}) AND org = ? AND event_id IN ({LISTED}) AND actor IN ({LISTED})""",
        [org, ids, listed(sorted(actors))],
    ).fetchall()


def links(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str
) -> tuple[list[JsonObject], list[JsonObject], bool] | None:
    """The events around `ref` (an item's id, or a reference) and the links between them, each in the order of the log,
    and whether there may be more.

    At most MAX_EDGES of each, as many as fit into an answer, and of causes and effects those within MAX_STEPS; None
    when nothing that the caller may read names it. An event stands there once, with its
    role. Links `from`: what the events of `ref` named, and further up from cause to cause; `ref` is what is named.
    Links `to`: the events that name it, and further down to those that they `caused`; `ref` is what they are about. A
    recall that served an item has a `served` link to it. A verdict on an item, and the trace that the verdict names,
    are `to`. A link is left out when the caller may not read what its event is about. `stated_in` is where a trace or
    message is named: the parts of the event's data, else its envelope.
    """
    found = _around(cursor, org, caller, ref)
    if not found:
        return None
    rows = _with_cases(cursor, found)
    more = len(found) == MAX_EDGES or len(rows) < len(found) or any(row["step"] == MAX_STEPS for row in rows)
    tasks = _tasks(cursor, org, {row["entity_id"] for row in rows if row["entity"] == "knowledge"})
    questions = _questions(cursor, [row["position"] for row in rows if row["event_type"] == RecallServed.name])
    stated = _stated(cursor, rows)
    told: list[tuple[JsonObject, list[JsonObject]]] = []
    for row in rows:
        links_of = row.pop("links") or ()
        del row["step"], row["naming"]
        row["score"], parts = stated.get(row["position"], (None, None))
        row = with_times(row, "time")
        edges = [_edge(ref, row, direction, relation, name, parts) for direction, relation, name in links_of]
        step = _step(ref, row | tasks.get(row["entity_id"], {}))
        told.append((step | questions.get(row["position"], {}), edges))
    shown = one_answer.fitting(told)
    all_edges = [edge for _, edges in shown for edge in edges]
    return (
        [step for step, _ in shown],
        all_edges[:MAX_EDGES],
        more or len(shown) < len(told) or len(all_edges) >= MAX_EDGES,
    )


def _stated(
    cursor: duckdb.DuckDBPyConnection, rows: Sequence[JsonObject]
) -> dict[int, tuple[int | None, list[str | None]]]:
    """Of each of these events that names a trace or message, or is a score, by position: the score, and the parts of
    its data that may name them.

    They are parsed a few at a time: DuckDB holds what it parsed of up to 2,048 events at once, each of which may have a
    megabyte.
    """
    left = [row["position"] for row in rows if row["naming"] or row["event_type"] == KnowledgeScored.name]
    found: dict[int, tuple[int | None, list[str | None]]] = {}
    while left:
        part = fitting_rows(cursor, _EVENTS, left)
        at = among_numbers("s.position", part)
        stated = cursor.execute(f"SELECT s.position, {_SCORE}, [{_PARTS}] FROM other_events AS s WHERE {at}").fetchall()
        found |= {position: (score, parts) for position, score, parts in stated}
        left = left[len(part) :]
    return found


def _with_cases(cursor: duckdb.DuckDBPyConnection, rows: list[JsonObject]) -> list[JsonObject]:
    """These rows with the words of their verdicts, up to the first one whose words are more than fit into an answer."""
    judged = [row["position"] for row in rows if row["verdict"] is not None]
    read = fitting_rows(cursor, Measured("feedback", bytes_of(_CASE), "position"), judged)
    at = among_numbers("position", read)
    words = {
        row.pop("position"): row
        for row in (named_rows(cursor, f"SELECT position, {_CASE_COLUMNS} FROM feedback WHERE {at}") if read else [])
    }
    nothing = dict.fromkeys(_CASE_NAMES)
    shown = rows if len(read) == len(judged) else [row for row in rows if row["position"] < judged[len(read)]]
    return [row | words.get(row["position"], nothing) for row in shown]


def _around(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> list[JsonObject]:
    """A row for each event around `ref`; its links as (direction, relation, what is named).

    One statement for both: each walk reads all of `lineage` several times.
    """
    may, may_values = readable_events(org, caller)
    told, told_values = told_to(caller)
    walk, walked = around(org, ref, may, may_values)
    return named_rows(
        cursor,
        f"""
        {walk},
        seen AS (
            SELECT position, '{OWN}' AS place, NULL::VARCHAR AS relation, 0 AS step FROM own
            UNION ALL SELECT position, '{ABOVE}', NULL, step FROM up
            UNION ALL SELECT position, '{BELOW}', relation, step FROM down
        ),
        once AS (
            SELECT position, max(step) AS step, list(DISTINCT place) AS places,
                list(DISTINCT relation) FILTER (relation IS NOT NULL) AS relations
            FROM seen GROUP BY position
        ),
        found AS (
            SELECT 'from' AS direction, l.relation, l.ref, l.position
            FROM lineage AS l WHERE l.position IN (SELECT position FROM up) AND l.org = ? AND l.ref <> ?
                AND (NOT ? OR l.relation IN ('trace', 'correlation'))
            UNION
            SELECT 'to', l.relation, l.ref, l.position
            FROM lineage AS l SEMI JOIN judging AS j ON j.position = l.position
            WHERE l.org = ? AND l.ref <> ?
            UNION
            SELECT 'to', relation, NULL, position FROM down
        ),
        linked AS (
            SELECT position, list([direction, relation, ref] ORDER BY direction, relation, ref) AS links,
                bool_or(relation IN ('trace', 'message')) AS naming
            FROM found GROUP BY position
        ),
        told AS (
            SELECT f.position, f.verdict FROM feedback AS f
            WHERE f.position IN (SELECT position FROM once) AND {told}
        )
        SELECT e.event_id, e.type AS event_type, e.entity, e.entity_id, e.actor, e.trace_id, e.message_id, e.position,
            epoch_us(e.stream_time) AS time, o.step, o.places, o.relations, f.verdict,
            n.links, n.naming
        FROM once AS o JOIN events AS e ON e.position = o.position LEFT JOIN told AS f ON f.position = o.position
            LEFT JOIN linked AS n ON n.position = o.position
        WHERE e.org = ? AND {may} ORDER BY e.position LIMIT {MAX_EDGES}
        """,
        [*walked, *(org, ref, ref.startswith("message:")), *(org, ref), *told_values, org, *may_values],
    )


def _edge(
    start: str, event: JsonObject, direction: str, relation: str, ref: str | None, parts: Sequence[str | None] | None
) -> JsonObject:
    """A link as JSON. `start` is where the query began, `parts` the event's data that may name a trace or message."""
    link: JsonObject = {"direction": direction, "relation": relation, "ref": event["entity_id"] if ref is None else ref}
    link |= {name: event[name] for name in ("event_id", "event_type", "entity", "entity_id", "position", "time")}
    if parts is None or relation not in ("trace", "message"):
        return link
    name = (link["ref"] if direction == "from" else start).removeprefix(f"{relation}:")
    naming = [
        part for part, text in zip(FROM, parts, strict=True) if (parsed(text) or {}).get(f"{relation}_id") == name
    ]
    return link | {"stated_in": naming or ["envelope"]}


def _tasks(cursor: duckdb.DuckDBPyConnection, org: str, ids: Collection[str]) -> dict[str, JsonObject]:
    """The `task` of each of these items, by id; the caller may read events about them."""
    if not ids:
        return {}
    rows = cursor.execute(
        f"""SELECT id, left(task, {MOST_TASK}) FROM knowledge_versions
            WHERE org = ? AND valid_to IS NULL AND id IN ({LISTED})""",
        [org, listed(sorted(ids))],
    ).fetchall()
    return {item_id: {"task": task} for item_id, task in rows}


def _questions(cursor: duckdb.DuckDBPyConnection, positions: Collection[int]) -> dict[int, JsonObject]:
    """Kind and question of these recalls, by position; the caller may read the events."""
    if not positions:
        return {}
    rows = cursor.execute(
        f"""SELECT position, d.kind, left(d.query, {MOST_TASK}) FROM recall_events
            WHERE position BETWEEN {min(positions)} AND {max(positions)} AND position IN ({among(positions)})"""
    ).fetchall()
    return {position: {"recall_kind": kind, "query": query} for position, kind, query in rows}


def _step(ref: str, step: JsonObject) -> JsonObject:
    places, relations, score, verdict = (step.pop(name) for name in ("places", "relations", "score", "verdict"))
    step["task"], task = step.pop("case_task"), step.pop("task", None)
    case = {name: value for name in _CASE if (value := step.pop(name)) is not None}
    step["role"] = role_of(ref, step["event_type"], places, relations or ())
    if score is not None:
        step["score"] = score
    if task is not None:
        step["task"] = task
    return step if verdict is None else step | {"verdict": verdict, "case": case}


def refused_count(cursor: duckdb.DuckDBPyConnection) -> int:
    """The number of refused events."""
    row = cursor.execute("SELECT count(*) FROM refused_events").fetchone()
    return 0 if row is None else int(row[0])


def readable_events(org: str, caller: Caller) -> tuple[str, list[str]]:
    """The predicate over `events AS e` of those whose existence the caller may know of; for the operator all."""
    if caller.is_operator:
        return "TRUE", []
    may, values = readable_by(caller, "k.")
    entities = caller.entities()
    marks = ", ".join("?" * len(entities))
    return (
        f"""CASE e.entity
            WHEN 'knowledge' THEN e.entity_id IN (SELECT k.id FROM knowledge AS k WHERE k.org = ? AND {may})
            WHEN 'document' THEN e.entity_id IN (SELECT k.id FROM documents AS k WHERE k.org = ? AND {may})
            ELSE e.actor IN ({marks}) END""",
        [org, *values, org, *values, *entities],
    )
