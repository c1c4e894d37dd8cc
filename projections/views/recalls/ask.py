"""Queries of recalls: those that served an item, those of a caller, and one of them with what it said.

A recall is its actor's and the operator's: every query has that in its SQL. Each reads the table in which a recall is
one row (projections/views/recalls/tables.py), and unfolds no item that it does not show.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import RecallKind
from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Page, Window
from projections.fold_kit.recalls import counts
from projections.fold_kit.sql_text import among, text
from projections.views.access import readable_by
from projections.views.times import timestamp, with_times

_RECALL = """entity_id AS recall_id, d.kind AS kind, epoch_us(stream_time) AS time, position,
    d.view_position AS view_position, actor, trace_id, message_id, d.ranking.session AS session,
    d.ranking.intent AS intent, d.ranking.language AS language, d.ranking.policy AS policy, d.query AS query,
    len(d.items) AS of"""
_PLACE = """rank::INTEGER AS rank, d.items[rank].version AS item_version, d.items[rank].relevance AS relevance,
    d.ranking.matches[rank] AS match"""


@dataclass(frozen=True, slots=True)
class Recalls(Page):
    """A page of recalls, and how many more there were whose detail is past its retention."""

    past: int = 0


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
) -> Recalls:
    """The caller's recalls that served an item, with its best place in each. Ask before whether the caller reads it."""
    wanted = Wanted(item=item_id, counts=counting)
    return _recalls(cursor, f"{_RECALL}, {_PLACE}", org, caller, wanted, window)


def recalls(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, wanted: Wanted, window: Window) -> Recalls:
    """The caller's recalls, newest first."""
    return _recalls(cursor, _RECALL, org, caller, wanted, window)


def _recalls(
    cursor: duckdb.DuckDBPyConnection, columns: str, org: str, caller: Caller, wanted: Wanted, window: Window
) -> Recalls:
    own = f"org = {text(org)} AND {_own(caller)}"
    past = f"FROM recall_remains WHERE {_narrowed(wanted, '')} AND {own}"
    if wanted.item is not None:
        past += f" AND list_contains(items, {text(wanted.item)})"
    ((number,),) = cursor.execute(f"SELECT count(*) {past}").fetchall()
    return replace(_page(cursor, columns, f"{_narrowed(wanted)} AND {own}", window, wanted.item), past=number)


def past_retention(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, recall_id: str) -> int | None:
    """The position of the caller's recall of this id whose detail is past its retention; None where there is none."""
    ((position,),) = cursor.execute(
        f"""SELECT min(position) FROM recall_remains
            WHERE recall_key = md5_number_lower(?) AND org = ? AND {_own(caller)}""",
        [recall_id, org],
    ).fetchall()
    return None if position is None else int(position)


def recall(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, recall_id: str) -> JsonObject | None:
    """One recall of the caller's with the items that it served (`results`), as far as the caller may see them now, and
    how many it may not (`left_out`). None where there is none; of two by one id it is the first.
    """
    ((position,),) = cursor.execute(
        f"SELECT min(position) FROM recall_events WHERE entity_id = ? AND org = ? AND {_own(caller)}", [recall_id, org]
    ).fetchall()
    if position is None:
        return None
    ranks = "unnest(range(1, len(d.items) + 1)) AS rank"
    at = f"FROM recall_events WHERE position = {int(position)}"
    (shown,) = named_rows(cursor, f"SELECT {_RECALL} {at}")
    served = named_rows(
        cursor, f"SELECT {_PLACE}, d.items[rank].id AS id FROM (SELECT d, {ranks} {at}) AS r ORDER BY r.rank"
    )
    said = _as_served(cursor, org, caller, {(place["id"], place["item_version"]) for place in served})
    results = [place | said[key] for place in served if (key := (place["id"], place["item_version"])) in said]
    return with_times(shown, "time") | {"results": results, "left_out": len(served) - len(results)}


def past_around(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ref: str) -> int:
    """How many of the caller's recalls that served the item `ref`, or are of the trace `trace:ID`, are reduced."""
    trace = ref.removeprefix("trace:")
    about = f"list_contains(items, {text(ref)})" if trace == ref else f"trace_id = {text(trace)}"
    ((number,),) = cursor.execute(
        f"SELECT count(*) FROM recall_remains WHERE {about} AND org = {text(org)} AND {_own(caller)}"
    ).fetchall()
    return int(number)


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


def _narrowed(wanted: Wanted, data: str = "d.") -> str:
    """The predicate of the recalls that are wanted, but for the item; `data` is what the kind is a part of."""
    equal = {"trace_id": wanted.trace, "actor": wanted.actor, f"{data}kind": wanted.kind}
    named = [f"{column} = {text(value)}" for column, value in equal.items() if value is not None]
    return " AND ".join(
        [_counting(wanted.counts, data), *named, *_within(wanted.since, ">="), *_within(wanted.until, "<")]
    )


def _counting(wanted: bool | None, data: str) -> str:
    if wanted is None:
        return "TRUE"
    return counts(data) if wanted else f"NOT {counts(data)}"


def _within(bound: int | datetime | None, compared: str) -> list[str]:
    if isinstance(bound, datetime):
        return [f"stream_time {compared} {timestamp(bound)}"]
    return [] if bound is None else [f"position {compared} {int(bound)}"]


def _page(cursor: duckdb.DuckDBPyConnection, columns: str, where: str, window: Window, item: str | None) -> Recalls:
    """A page of recalls; with an item those that served it, `rank` being its best place in each."""
    source = f"recall_events WHERE {where}"
    if item is not None:
        places = f"list_position(list_transform(d.items, lambda x: x.id), {text(item)})"
        source = f"(SELECT *, {places} AS rank FROM {source}) WHERE rank > 0"
    earlier = "" if window.before is None else f"AND position < {int(window.before)}"
    rows = named_rows(
        cursor, f"SELECT {columns} FROM {source} {earlier} ORDER BY position DESC LIMIT {int(window.limit)}"
    )
    total = len(rows)
    if window.before is not None or len(rows) == window.limit:  # there may be others
        ((total,),) = cursor.execute(f"SELECT count(*) FROM {source}").fetchall()
    shown = one_answer.fitting(rows)
    goes_on = len(rows) == window.limit or len(shown) < len(rows)
    return Recalls([with_times(row, "time") for row in shown], total, shown[-1]["position"] if goes_on else None)
