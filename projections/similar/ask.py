"""Queries of slims: the candidate items, and the state of the groups of a slim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import orjson

from kledger.contract.documents import CHUNK
from kledger.contract.scopes import OPERATOR
from ledger.event import JsonObject
from ledger.privacy.sealed import USER
from projections.fold_kit.sql_text import text
from projections.fold_kit.visibility import shared_by_a_project
from projections.views.access import LIST, LISTED, listed
from projections.views.knowledge.ask import parsed


@dataclass(frozen=True, slots=True)
class Eligible:
    """An active item of the owner. Only items with an equal `among` may be merged: they have the same readers, live
    alike, and belong to the same persons, with whom what became of them is forgotten."""

    id: str
    version: int
    task: str
    content: str
    types: list[str]
    tags: JsonObject
    resource_ids: list[str]
    quality: float
    confidence: float
    created_position: int
    among: str


@dataclass(frozen=True, slots=True)
class Standing:
    """An item's present state."""

    owner: str
    version: int
    status: str
    merged_into: str | None
    position: int
    resource_ids: list[str]
    erased: bool

    def at(self, position: int) -> Standing:
        """This standing, with another last position."""
        return replace(self, position=position)


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposed group, from its event; `merged` is (id, version, similarity)."""

    group: int
    survivor: str
    survivor_version: int
    merged: list[tuple[str, int, float]]
    types: list[str] | None
    task: str | None
    content: str | None
    tags: JsonObject | None
    usage: JsonObject | None


@dataclass(frozen=True, slots=True)
class Merged:
    """The version of a survivor that its merge made, and whether that was reverted."""

    version: int
    reverted: bool


_SHARED = shared_by_a_project()
_SEEN_BY = "[list_sort(list_distinct(scopes)), list_sort(shared_with), list_sort(writers)]"
# A short memory that took in others would take them along when it is over, and a chunk when its document says it no
# longer. An episode is what happened once: what says the same may have happened again.
_LIVES = f"""[layer, CASE WHEN layer = 'short' THEN lifetime::VARCHAR
    WHEN layer = 'episodic' THEN coalesce(memory->>'happened_at', id)
    WHEN starts_with(id, {text(CHUNK)}) THEN id END]"""
# Tags and words of a merged item stand in its survivor. They belong to all who ever owned it, were in its scopes, or
# wrote in it: in what is not theirs, they would outlast a forgetting.
_WHOSE = "scopes || [owner] || CASE WHEN change IN ('revised', 'evolved') THEN [actor] ELSE [] END"
_AMONG = f"to_json({_SEEN_BY} || [{_LIVES}] || [coalesce(persons, [])])::VARCHAR"


def eligible(
    cursor: duckdb.DuckDBPyConnection, org: str, owner: str, scopes: Sequence[str] | None, as_of: int
) -> list[Eligible]:
    """The active items of one owner at a position, those within any of `scopes` where they are given; without what
    projects share, whose words a coordinator approved."""
    where, values = "", []
    if scopes is not None:
        where = f"AND list_has_any(scopes, {LIST})"
        values.append(listed(scopes))
    rows = cursor.execute(
        f"""WITH mine AS MATERIALIZED (
                FROM knowledge_at({int(as_of)})
                WHERE org = ? AND owner = ? AND status = 'active' AND NOT erased AND NOT {_SHARED} {where}
            )
            SELECT id, version, task, content, types, tags::VARCHAR, resource_ids, score + helpful - 2 * harmful,
                confidence, created_position, {_AMONG}
            FROM mine LEFT JOIN (
                SELECT id, list_sort(list(DISTINCT person)) AS persons FROM (
                    SELECT id, unnest({_WHOSE}) AS person FROM knowledge_versions
                    WHERE org = ? AND valid_from <= {int(as_of)} AND id IN (SELECT id FROM mine)
                ) WHERE starts_with(person, '{USER}') AND person <> '{OPERATOR}' GROUP BY id
            ) USING (id)
            ORDER BY created_position, id""",
        [org, owner, *values, org],
    ).fetchall()
    fields = [[*row[:5], parsed(row[5]), *row[6:]] for row in rows]
    return [Eligible(*each) for each in fields]


def standings(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str]) -> dict[str, Standing]:
    """The present state of these items, without a check of access: a slim works for their owner."""
    rows = cursor.execute(
        f"""SELECT id, owner, version, status, merged_into, position, resource_ids, erased FROM knowledge
            WHERE org = ? AND id IN ({LISTED})""",
        [org, listed(ids)],
    ).fetchall()
    return {row[0]: Standing(*row[1:]) for row in rows}


def merged_among(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str], as_of: int) -> set[str]:
    """Those of these items that are merged into another one as of a position."""
    rows = cursor.execute(
        f"SELECT id FROM knowledge_at({int(as_of)}) WHERE org = ? AND status = 'merged' AND id IN ({LISTED})",
        [org, listed(ids)],
    ).fetchall()
    return {name for (name,) in rows}


def proposed_groups(cursor: duckdb.DuckDBPyConnection, org: str, slim: str) -> list[Proposed]:
    """The groups that a slim has proposed so far, by number."""
    rows = cursor.execute(
        "SELECT data::VARCHAR FROM events WHERE org = ? AND type = 'slim.proposed' AND entity_id = ? ORDER BY position",
        [org, slim],
    ).fetchall()
    return sorted((_proposed(orjson.loads(row[0])) for row in rows), key=lambda group: group.group)


def calls_begun(cursor: duckdb.DuckDBPyConnection, org: str, slim: str) -> set[str]:
    """The keys of the model calls that a slim has recorded as begun."""
    rows = cursor.execute(
        "SELECT data->>'call' FROM events WHERE org = ? AND type = 'slim.started' AND entity_id = ?", [org, slim]
    ).fetchall()
    return {row[0] for row in rows}


def absorbed_by(cursor: duckdb.DuckDBPyConnection, org: str, slim: str) -> dict[str, Merged]:
    """The survivors of the groups that a slim has merged, those reverted since included."""
    rows = cursor.execute(
        """SELECT v.id, v.version, EXISTS (
               FROM events AS r WHERE r.org = e.org AND r.type = 'knowledge.reverted' AND r.entity_id = e.entity_id
                   AND (r.data->>'cause') = ?)
           FROM other_events AS e JOIN knowledge_versions AS v ON v.valid_from = e.position
           WHERE e.org = ? AND e.type = 'knowledge.absorbed' AND (e.data->>'slim') = ?""",
        [slim, org, slim],
    ).fetchall()
    return {row[0]: Merged(row[1], row[2]) for row in rows}


def _proposed(data: JsonObject) -> Proposed:
    merged = [(each["id"], each["version"], each["similarity"]) for each in data["merged"]]
    optional: list[Any] = [data.get(name) for name in ("types", "task", "content", "tags", "usage")]
    return Proposed(data["group"], data["survivor"], data["survivor_version"], merged, *optional)
