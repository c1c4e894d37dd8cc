"""Memories: the view `memory_items`, and the queries of a timeline and of one memory.

What a memory is counted by follows from events: its evidence, its first and last confirmation, how often its use
succeeded. It is the same item as in `knowledge`; access is in the SQL of every query, as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import orjson

from kledger.contract.memory import are_words
from kledger.contract.projects import SHARED_KINDS, meant_for
from kledger.contract.scopes import Caller
from kledger.contract.words import MemoryConcern, MemoryLayer, ProjectRole
from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import first_row, named_rows
from projections.fold_kit.page import Measured, Page, Window, fitting_rows, in_one_state
from projections.fold_kit.sql_text import among, among_numbers
from projections.fold_kit.versioned_view import Column, comments
from projections.fold_kit.visibility import shared_by_a_project
from projections.views.access import LISTED, listed, readable_by, seen_by
from projections.views.knowledge.ask import BYTES, ITEM_COLUMNS, WHERE_SET, whole
from projections.views.knowledge.evidence import CREDITED, SUPPORTS
from projections.views.knowledge.memory_fields import stated_memory
from projections.views.knowledge.memory_health import concern
from projections.views.knowledge.tables import ITEM
from projections.views.knowledge.tags import hold_words, tagged_with
from projections.views.times import microseconds, rfc3339

_COUNTED = (
    Column("happened_at", "TIMESTAMPTZ", "When it happened, as its save says; else when the log kept it"),
    Column("expires_at", "TIMESTAMPTZ", "Of a short memory: when it is out of recall; else null"),
    Column("evidence_count", "BIGINT", "1 for its save, and 1 for each confirmation and credited helpful case"),
    Column("first_observed", "TIMESTAMPTZ", "When the log kept its save"),
    Column("last_confirmed", "TIMESTAMPTZ", "When the log kept its last confirmation or credited helpful case"),
    Column("usage_count", "BIGINT", "Credited cases, helpful and harmful"),
    Column("success_rate", "DOUBLE", "The share of helpful ones among them; null where there is none"),
)


def _select(source: str, lives: str, cases: str) -> str:
    return f"""
    SELECT k.*, coalesce(TRY_CAST(k.memory->>'happened_at' AS TIMESTAMPTZ), k.created_at) AS happened_at,
        s.expires_at,
        1 + k.supporting AS evidence_count, k.created_at AS first_observed, f.last_confirmed,
        coalesce(f.uses, 0) AS usage_count, f.helped / f.uses AS success_rate
    FROM {source} k
    LEFT JOIN {lives} s ON s.org = k.org AND s.id = k.id
    LEFT JOIN (
        SELECT org, knowledge_id, max(time) FILTER {SUPPORTS} AS last_confirmed,
            nullif(count(*) FILTER {CREDITED}, 0) AS uses,
            count(*) FILTER (verdict = 'helpful' AND {CREDITED}) AS helped
        FROM feedback {cases} GROUP BY org, knowledge_id
    ) f ON f.org = k.org AND f.knowledge_id = k.id
    WHERE k.layer IS NOT NULL"""


TABLES = f"""
CREATE VIEW memory_items AS {_select("knowledge", "short_memories", "")};
COMMENT ON VIEW memory_items IS 'What is remembered now: the items with a layer, and what follows from their cases';
{comments("memory_items", [*ITEM, *_COUNTED])}
CREATE MACRO memory_items_at(asked) AS TABLE {
    _select("knowledge_at(asked)", "short_memories_at(asked)", "WHERE position <= asked")
};
COMMENT ON MACRO TABLE memory_items_at IS 'Internal: memory_items_as_of, of a position';
"""

_COLUMNS = f"{ITEM_COLUMNS}, {', '.join(column.read() for column in _COUNTED)}"
_TIMES = ("expires_at", "first_observed", "last_confirmed")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which memories are listed; `layers`, `kinds` and `tags` are each any-of, `since` and `until` moments of what
    happened."""

    layers: Sequence[MemoryLayer] = ()
    kinds: Sequence[str] = ()
    owner: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    status: str = "active"
    concern: MemoryConcern | None = None
    role: ProjectRole | None = None
    """Of what a project shares, only what is meant for this role."""
    ids: Sequence[str] = ()
    """Only those of these items that are memories."""
    tags: Sequence[str] = ()


def _memories(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    as_of: int | None = None,
    *,
    moment: datetime,
) -> Page:
    """A page of the memories that the caller sees, by when they happened, the latest first; at one moment the more
    important first.

    At `moment` a short memory has to be alive to be active. `next` of the page is an offset.
    """
    seen, seen_values = seen_by(caller, "m.")
    where, values = ["m.org = ?", seen], [org, *seen_values]
    for column, any_of in (("layer", wanted.layers), ("kind", wanted.kinds)):
        if any_of:
            where.append(f"m.{column} IN ({', '.join('?' * len(any_of))})")
            values += any_of
    if wanted.ids:
        where.append(f"m.id IN ({LISTED})")
        values.append(listed(wanted.ids))
    if wanted.tags:
        where.append(tagged_with(wanted.tags, "m."))
    if wanted.owner is not None:
        where.append("m.owner = ?")
        values.append(wanted.owner)
    for predicate, bound in ((">=", wanted.since), ("<", wanted.until)):
        if bound is not None:  # as a number: the driver takes no moment whose UTC form is beyond Python's years
            where.append(f"epoch_us(m.happened_at) {predicate} {microseconds(bound)}")
    if wanted.role is not None and (others := set(SHARED_KINDS).difference(meant_for(wanted.role))):
        where.append(f"NOT ({shared_by_a_project('m.')} AND m.kind IN ({among(sorted(others))}))")
    if wanted.status != "all":
        where.append(f"{_status(moment)} = ?")
        values.append(wanted.status)
    if wanted.concern is not None:
        concerned, concerned_values = concern(wanted.concern, caller)
        where.append(concerned)
        values += concerned_values
    source, first = _source(as_of)
    if as_of is not None:
        where.append(
            f"m.id IN (SELECT now.id FROM knowledge AS now WHERE now.org = ? AND {seen_by(caller, 'now.')[0]})"
        )
        values += [org, *seen_values]
    matching = f"FROM {source} AS m WHERE {' AND '.join(where)}"
    parameters = [*first, *values]
    found = cursor.execute(
        f"""SELECT m.created_position {matching}
            ORDER BY m.happened_at DESC, coalesce(m.importance, 0.5) DESC, m.created_position DESC
            LIMIT {int(window.limit)} OFFSET {int(window.offset)}""",
        parameters,
    ).fetchall()
    results = _shown(cursor, [position for (position,) in found], as_of, moment)
    ((total,),) = cursor.execute(f"SELECT count(*) {matching}", parameters).fetchall()
    following = window.offset + len(results)
    return Page(results, total, following if results and following < total else None)


memories = in_one_state(_memories)
"""A page of the memories that the caller sees, in one state of the view."""


def _shown(
    cursor: duckdb.DuckDBPyConnection, created: Sequence[int], as_of: int | None, moment: datetime
) -> list[JsonObject]:
    """The memories that were saved at these positions, the first of them that fit into an answer."""
    source, first = _source(as_of)
    contents = "(FROM knowledge_versions WHERE valid_to IS NULL)" if as_of is None else f"knowledge_at({int(as_of)})"
    created = fitting_rows(cursor, Measured(contents, BYTES), created)
    at = among_numbers("created_position", created)
    rows = named_rows(cursor, f"SELECT {_COLUMNS} FROM {source} WHERE {at}", first) if created else []
    by_position = {row["created_position"]: memory_of(row, moment) for row in rows}
    return list(one_answer.fitting([by_position[position] for position in created]))


def memory(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    item_id: str,
    as_of: int | None = None,
    *,
    moment: datetime,
) -> JsonObject | None:
    """One memory, with `erased`; None when there is none that the caller may read, now and then."""
    may, values = readable_by(caller)
    source, first = _source(as_of)
    row = first_row(
        cursor,
        f"""SELECT {_COLUMNS}, erased FROM {source} WHERE org = ? AND id = ? AND {may}
            AND EXISTS (FROM knowledge WHERE org = ? AND id = ? AND {may})""",
        [*first, org, item_id, *values, org, item_id, *values],
    )
    return None if row is None else {**memory_of(row, moment), "erased": row["erased"]}


def reason_of_rejection(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str) -> str | None:
    """Why a proposal was declined, as its coordinator said; null where they said nothing."""
    row = cursor.execute(
        """SELECT e.data->>'reason' FROM knowledge_versions AS v JOIN other_events AS e ON e.position = v.valid_from
            WHERE v.org = ? AND v.id = ? AND v.change = 'rejected' AND v.valid_to IS NULL""",
        [org, item_id],
    ).fetchone()
    return None if row is None else row[0]


def words_of(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, version: int) -> list[str]:
    """The words with which a memory was saved, as one version of the item has them; none of what is no memory."""
    row = cursor.execute(
        "SELECT memory->'$.tags' FROM knowledge_versions WHERE org = ? AND id = ? AND version = ?",
        [org, item_id, version],
    ).fetchone()
    words: list[str] = orjson.loads((row and row[0]) or "[]")
    return words


def _source(as_of: int | None) -> tuple[str, list[Any]]:
    return ("memory_items", []) if as_of is None else ("memory_items_at(?)", [as_of])


def _status(moment: datetime) -> str:
    """The status at a moment: a short memory that is over is expired before the node says so."""
    us = microseconds(moment)
    return f"CASE WHEN m.status = 'active' AND epoch_us(m.expires_at) <= {us} THEN 'expired' ELSE m.status END"


def memory_of(row: JsonObject, moment: datetime) -> JsonObject:
    """A memory as the interfaces answer it, from a row of `memory_items`: the fields of its layer by their own names.

    `type` is its layer.
    """
    item: JsonObject = whole(row)
    stated: JsonObject = stated_memory(row) or {}
    times = {name: None if row[name] is None else rfc3339(row[name]) for name in _TIMES}
    if item["status"] == "active" and row["expires_at"] is not None and row["expires_at"] <= microseconds(moment):
        item["status"] = "expired"
    kept = ("id", "task", "content", "types", "scopes", "owner", "visibility", "status", "version", "position")
    shown: JsonObject = {
        **{name: item[name] for name in kept},
        **{"layer": stated["layer"], "type": stated["layer"], "kind": stated["kind"]},
        **{"importance": stated["importance"], "confidence": row["confidence"]},
        **{"evidence_count": row["evidence_count"], "first_observed": times["first_observed"]},
        **{"last_confirmed": times["last_confirmed"], "last_updated": item["updated_at"]},
        **{"success_rate": row["success_rate"], "usage_count": row["usage_count"]},
        **{"tags": _tags(item, stated), "related_memories": stated["related"]},
        "session_id": stated["session"],
        **{"created_at": item["created_at"], "updated_at": item["updated_at"]},
        **{name: item[name] for name in ("acl", *WHERE_SET) if name in item},
    }
    return shown | _of_layer(stated, times, item["content"])


def _tags(item: JsonObject, stated: JsonObject) -> Any:
    """The tags of a memory: those of its save are its own, and what was stated anew are the item's.

    They are a list where they are words alone, as a revision states them that names a list.
    """
    if stated["tags"] and hold_words(item["tags"]):
        return stated["tags"]
    return list(item["tags"]) if item["version"] > 1 and are_words(item["tags"]) else item["tags"]


def _of_layer(stated: JsonObject, times: JsonObject, content: str) -> JsonObject:
    match stated["layer"]:
        case "short":
            return {"lifetime": stated["lifetime"], "expires_at": times["expires_at"]}
        case "semantic":
            return {"category": stated["category"]}
        case "episodic":
            context = {name: stated[name] for name in ("participants", "outcome", "artifacts")}
            return {
                "event": stated["event"] or content,
                "context": {"session_id": stated["session"], **context},
                "timestamp": stated["happened_at"],
            }
        case _:
            return {name: stated[name] for name in ("name", "trigger", "steps")}


@dataclass(frozen=True, slots=True)
class Evidence:
    """How many sources an item has, 1 for its save and 1 for each case that supports it; when its version was made,
    which no verdict changes; and when it was last stated or supported."""

    sources: int
    stated: str
    upheld: str


def evidence(
    cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str], as_of: int | None = None
) -> dict[str, Evidence]:
    """The evidence of each of these items, now or as of a position."""
    columns = "k.id, 1 + k.supporting, k.position > k.version_position"
    now = f"SELECT {columns}, epoch_us(k.changed_at) FROM knowledge_state AS k"
    then = f"""SELECT {columns}, epoch_us(v.valid_from_time) FROM knowledge_at({as_of}) AS k
        JOIN knowledge_versions AS v ON v.valid_from = k.version_position"""
    query = f"{now if as_of is None else then} WHERE k.org = ? AND k.id IN ({among(ids)})"
    found = cursor.execute(query, [org]).fetchall()
    supported = _supported(cursor, org, [name for name, _, judged, _ in found if judged], as_of)
    return {
        name: Evidence(sources, rfc3339(stated), rfc3339(max(stated, supported.get(name, stated))))
        for name, sources, _, stated in found
    }


def _supported(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str], as_of: int | None) -> dict[str, int]:
    """When each of these items was last confirmed or credited with a helpful case, in microseconds."""
    if not ids:
        return {}
    by_then = "" if as_of is None else f"AND position <= {int(as_of)}"
    query = f"""SELECT knowledge_id, epoch_us(max(time)) FROM feedback
        WHERE org = ? AND knowledge_id IN ({among(ids)}) AND {SUPPORTS} {by_then} GROUP BY knowledge_id"""
    return dict(cursor.execute(query, [org]).fetchall())
