"""Queries of recalls: those that served an item, those of a caller, and one of them with what it said.

A recall is its actor's and the operator's: every query has that in its SQL. A page is one filter with an order and a
limit, which DuckDB answers out of the narrow columns before it reads the rest; positions looked up in a list would read
every column of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import RecallKind
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Page, Window
from projections.fold_kit.recalls import counts
from projections.fold_kit.sql_text import among, text
from projections.views.knowledge.ask import microseconds, readable_by, with_times

_RECALL = """recall_id, kind, epoch_us(time) AS time, position, view_position, actor, trace_id, message_id, session,
    intent, language, policy, query"""
_PLACE = "rank, item_version, relevance, match"
_FIRST = "(rank = 1 OR rank IS NULL)"
"""Of the rows of a recall the one that each has once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which recalls: each field narrows. `since` is the first position or moment, `until` the first one after."""

    trace: str | None = None
    actor: str | None = None
    kind: RecallKind | None = None
    item: str | None = None
    since: int | datetime | None = None
    until: int | datetime | None = None
    counts: bool | None = None
    """True: those that count, without looks at pages; False: looks alone."""


def of_item(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    item_id: str,
    window: Window,
    counting: bool | None = None,
) -> Page:
    """The caller's recalls that served an item, with its best place in each. Ask before whether the caller reads it."""
    where = f"item_id = {text(item_id)} AND org = {text(org)} AND {_own(caller)} AND {_counting(counting)}"
    return _page(cursor, f"{_RECALL}, {_PLACE}", where, window)


def recalls(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, wanted: Wanted, window: Window) -> Page:
    """The caller's recalls, newest first."""
    return _page(cursor, _RECALL, f"{_narrowed(wanted)} AND org = {text(org)} AND {_own(caller)}", window)


def recall(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, recall_id: str) -> JsonObject | None:
    """One recall of the caller's with the items that it served (`results`), as far as the caller may see them now, and
    how many it may not (`left_out`). None where there is none; of two by one id it is the first.
    """
    ((position,),) = cursor.execute(
        f"SELECT min(position) FROM recalls WHERE recall_id = ? AND org = ? AND {_own(caller)}", [recall_id, org]
    ).fetchall()
    if position is None:
        return None
    query = f"SELECT {_RECALL}, {_PLACE}, item_id AS id FROM recalls WHERE position = {int(position)} ORDER BY rank"
    rows = named_rows(cursor, query)
    places = [{name: row.pop(name) for name in ("rank", "item_version", "relevance", "match", "id")} for row in rows]
    served = [place for place in places if place["id"] is not None]
    said = _as_served(cursor, org, caller, {(place["id"], place["item_version"]) for place in served})
    shown = [place | said[key] for place in served if (key := (place["id"], place["item_version"])) in said]
    return with_times(rows[0], "time") | {
        "of": len(served),
        "results": shown,
        "left_out": len(served) - len(shown),
    }


def _as_served(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, served: Collection[tuple[str, int]]
) -> dict[tuple[str, int], JsonObject]:
    """What these versions of items say, and which version holds now, by id and version.

    Left out is what the caller may not read: the item now, or the version by who read it then. Ids are looked up in
    narrow columns, words by the positions of their versions.
    """
    now = {
        item_id: (version, status, at)
        for item_id, version, status, at in cursor.execute(
            f"""SELECT id, version, status, version_position FROM knowledge_state
                WHERE id IN ({among(sorted({item_id for item_id, _ in served}))}) AND org = {text(org)}"""
        ).fetchall()
    }
    earlier = {item_id for item_id, version in served if item_id in now and now[item_id][0] != version}
    made = {(item_id, version): at for item_id, (version, _, at) in now.items()}
    if earlier:
        made |= {
            (item_id, version): at
            for item_id, version, at in cursor.execute(
                f"""SELECT id, version, valid_from FROM knowledge_versions
                    WHERE id IN ({among(sorted(earlier))}) AND org = {text(org)}"""
            ).fetchall()
        }
    known = {key: made[key] for key in served if key in made}
    positions = {*known.values(), *(now[item_id][2] for item_id, _ in known)}
    may, values = readable_by(caller)
    said = {
        at: {"task": task, "content": content}
        for at, task, content in cursor.execute(
            f"""SELECT valid_from, task, content FROM knowledge_versions
                WHERE valid_from IN ({among(positions)}) AND {may}""",
            values,
        ).fetchall()
    }
    return {
        (item_id, version): said[at] | {"version_now": now[item_id][0], "status_now": now[item_id][1]}
        for (item_id, version), at in known.items()
        if at in said and now[item_id][2] in said
    }


def _own(caller: Caller) -> str:
    """The predicate of the caller's recalls; the operator's are all."""
    return "TRUE" if caller.is_operator else f"actor IN ({among(caller.entities())})"


def _narrowed(wanted: Wanted) -> str:
    """The predicate of one row of each recall that is wanted, or of more where an item stands in it twice."""
    one = _FIRST if wanted.item is None else f"item_id = {text(wanted.item)}"
    equal = {"trace_id": wanted.trace, "actor": wanted.actor, "kind": wanted.kind}
    named = [f"{column} = {text(value)}" for column, value in equal.items() if value is not None]
    return " AND ".join(
        [one, _counting(wanted.counts), *named, *_within(wanted.since, ">="), *_within(wanted.until, "<")]
    )


def _counting(wanted: bool | None) -> str:
    if wanted is None:
        return "TRUE"
    return counts() if wanted else f"NOT {counts()}"


def _within(bound: int | datetime | None, compared: str) -> list[str]:
    if isinstance(bound, datetime):
        return [f"time {compared} make_timestamptz({microseconds(bound)})"]
    return [] if bound is None else [f"position {compared} {int(bound)}"]


def _page(cursor: duckdb.DuckDBPyConnection, columns: str, where: str, window: Window) -> Page:
    """A page of recalls, each once, with how many items it served (`of`)."""
    earlier = "" if window.before is None else f"AND position < {int(window.before)}"
    rows = named_rows(
        cursor,
        f"SELECT {columns} FROM recalls WHERE {where} {earlier} ORDER BY position DESC, rank LIMIT {int(window.limit)}",
    )
    each_once = list({row["position"]: row for row in reversed(rows)}.values())[::-1]
    total = len(each_once)
    if window.before is not None or len(rows) == window.limit:  # there may be others
        ((total,),) = cursor.execute(f"SELECT count(DISTINCT position) FROM recalls WHERE {where}").fetchall()
    served = _served(cursor, [row["position"] for row in each_once])
    results = [with_times(row, "time") | {"of": served[row["position"]]} for row in each_once]
    return Page(results, total, rows[-1]["position"] if len(rows) == window.limit else None)


def _served(cursor: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> dict[int, int]:
    """How many items each of these recalls served."""
    if not positions:
        return {}
    rows = cursor.execute(
        f"""SELECT position, count(item_id) FROM recalls
            WHERE position BETWEEN {min(positions)} AND {max(positions)} AND position IN ({among(positions)})
            GROUP BY position"""
    ).fetchall()
    return dict(rows)
