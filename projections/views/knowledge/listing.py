"""List of items: a page of those that the caller sees, in an order, with the total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import ItemLayer, ItemSort, MemoryConcern
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, Page, Selection, Window, in_one_state, page_in
from projections.fold_kit.sql_text import among, among_numbers, text
from projections.views.access import seen_by
from projections.views.knowledge.ask import BYTES, ITEM_COLUMNS, item_of, rows_created_at
from projections.views.knowledge.layers import layer_in
from projections.views.knowledge.lives import alive, over_among
from projections.views.knowledge.memory_fields import is_short
from projections.views.knowledge.memory_health import concern
from projections.views.knowledge.tags import tagged_with
from projections.views.times import microseconds

_ORDERS: Mapping[ItemSort, str | None] = {
    "newest": None,
    "oldest": "-created_position",
    "updated": "position",
    "helpful": "helpful",
    "confidence": "confidence",
}
"""What each order sorts by, the highest first."""
_NOW = ("knowledge_versions AS k", "k.valid_to IS NULL")
"""The rows of `knowledge` with what no verdict changes: without the join, looking through them takes two thirds."""
_NOW_MEASURED = Measured("(FROM knowledge_versions WHERE valid_to IS NULL)", BYTES)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are listed; `types`, `scopes`, `visibility`, `tags` and `layers` are each any-of.

    `since` and `until` are moments of the last change, a verdict included; `created_by` is who stated the save.
    """

    types: Sequence[str] = ()
    scopes: Sequence[str] = ()
    owner: str | None = None
    visibility: Sequence[str] = ()
    status: str = "active"
    tags: Sequence[str] = ()
    layers: Sequence[ItemLayer] = ()
    min_score: int | None = None
    max_score: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    created_by: str | None = None
    concern: MemoryConcern | None = None


def items_in(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    as_of: int | None = None,
    moment: datetime | None = None,
    sort: ItemSort = "newest",
) -> Page:
    """A page of the items that the caller sees, in the state of the view that whoever asks has begun."""
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    if as_of is None and wanted.since is None and wanted.until is None and sort in ("newest", "oldest"):
        selection = _without_verdicts(selection)
    rows = rows_created_at if as_of is None else partial(_rows_at, as_of)
    measured = _NOW_MEASURED if as_of is None else Measured(f"knowledge_at({int(as_of)})", BYTES)
    page = page_in(cursor, selection, window, rows, _ORDERS[sort], measured=measured)
    results = [in_list(row, wanted) for row in page.results]
    if wanted.status == "all" and (short := [item["id"] for item in results if is_short(item)]):
        over = over_among(cursor, org, short, moment or datetime.now(UTC), as_of)
        results = [{**item, "status": "expired"} if item["id"] in over else item for item in results]
    return replace(page, results=results)


items = in_one_state(items_in)
"""A page of the items that the caller sees, in a state of the view of its own."""


def in_list(row: JsonObject, wanted: Wanted) -> JsonObject:
    """A row of ITEM_COLUMNS as lists show it."""
    return {**item_of(row), "status": "expired" if wanted.status == "expired" else row["status"]}


def _rows_at(as_of: int, cursor: duckdb.DuckDBPyConnection, created: Sequence[int]) -> list[JsonObject]:
    at = among_numbers("created_position", created)
    return named_rows(cursor, f"SELECT {ITEM_COLUMNS} FROM knowledge_at({int(as_of)}) WHERE {at}")


def _without_verdicts(selection: Selection) -> Selection:
    """The same rows as of now, where no verdict on an item is looked at."""
    table, holds = _NOW
    return replace(selection, source=table, where=[holds, *selection.where])


def has_any(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    as_of: int | None = None,
    moment: datetime | None = None,
) -> bool:
    """Whether the caller sees any such item. Scores and times, which verdicts change, are not looked at: state none."""
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    if as_of is None:
        selection = _without_verdicts(selection)
    return bool(cursor.execute(f"SELECT 1 {selection.matching()} LIMIT 1", list(selection.values)).fetchall())


def wanted_among(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    ids: Sequence[str],
    as_of: int | None = None,
    moment: datetime | None = None,
) -> set[str]:
    """Those of these ids whose items the caller sees and wants."""
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    rows = cursor.execute(
        f"SELECT k.id {selection.matching()} AND k.id IN (SELECT unnest(?))", [*selection.values, list(ids)]
    ).fetchall()
    return {item_id for (item_id,) in rows}


def wanted_versions(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    most: int,
    as_of: int | None = None,
    moment: datetime | None = None,
) -> list[int] | None:
    """The positions that made the versions of what the caller sees and wants; None where they are more than `most`."""
    selection = selected(cursor, org, caller, wanted, as_of, moment)
    question = f"SELECT k.version_position {selection.matching()} LIMIT {int(most) + 1}"
    rows = cursor.execute(question, selection.values).fetchall()
    return [position for (position,) in rows] if len(rows) <= most else None


def selected(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    as_of: int | None = None,
    moment: datetime | None = None,
) -> Selection:
    """The rows `k` of the items that the caller sees and wants.

    A short memory that is over at `moment` (now, where none is given) is expired and not active, also before the node
    says so. A concern is as of now.
    """
    seen, seen_values = seen_by(caller, "k.")
    stated, stated_values = as_stated(wanted.types, wanted.scopes, wanted.owner)
    where, values = ["k.org = ?", seen, *stated], [org, *seen_values, *stated_values]
    if wanted.created_by is not None:
        where.append(
            "k.created_position IN (SELECT valid_from FROM knowledge_versions WHERE change = 'saved' AND actor = ?)"
        )
        values.append(wanted.created_by)
    if wanted.concern is not None:
        concerned, concerned_values = concern(wanted.concern, caller, "k.")
        where.append(concerned)
        values += concerned_values
    where += _narrowed(wanted)
    if wanted.status != "all":
        where.append(_status(wanted.status, alive(cursor, org, "k", moment or datetime.now(UTC), as_of)))
    if as_of is not None:
        where.append(
            f"k.id IN (SELECT now.id FROM knowledge AS now WHERE now.org = ? AND {seen_by(caller, 'now.')[0]})"
        )
        values += [org, *seen_values]
    source = "knowledge AS k" if as_of is None else f"knowledge_at({int(as_of)}) AS k"
    return Selection(source, where, values)


def as_stated(types: Sequence[str], scopes: Sequence[str], owner: str | None) -> tuple[list[str], list[Any]]:
    """The predicates of rows `k` with any of these types, any of these scopes and this owner, and their values."""
    where: list[str] = []
    values: list[Any] = []
    for column, any_of in (("types", types), ("scopes", scopes)):
        if any_of:
            where.append("(" + " OR ".join(f"list_contains(k.{column}, ?)" for _ in any_of) + ")")
            values += any_of
    if owner is not None:
        where.append("k.owner = ?")
        values.append(owner)
    return where, values


def _status(status: str, alive: str) -> str:
    """The predicate of a status, where `alive` is that of items whose life is not over."""
    if status == "active":
        return f"k.status = 'active' AND {alive}"
    if status == "expired":
        return f"(k.status = 'expired' OR (k.status = 'active' AND NOT ({alive})))"
    return f"k.status = {text(status)}"


def status_in(
    cursor: duckdb.DuckDBPyConnection, org: str, wanted: Wanted, as_of: int | None, moment: datetime | None
) -> str:
    """The status of the selected items k at a moment, as the lists tell it (SQL): what is over is expired, said or not.

    Where one status is wanted, all of them have it.
    """
    if wanted.status != "all":
        return text(wanted.status)
    living = alive(cursor, org, "k", moment or datetime.now(UTC), as_of)
    return "k.status" if living == "TRUE" else f"if(k.status = 'active' AND NOT ({living}), 'expired', k.status)"


def _narrowed(wanted: Wanted) -> list[str]:
    """The predicates of what is written into the statement: numbers, moments, words of closed sets, and tags."""
    where = []
    for column, one_of in (
        ("k.visibility", wanted.visibility),
        (layer_in("k."), wanted.layers),
    ):
        if one_of:
            where.append(f"{column} IN ({among(one_of)})")
    for predicate, score in ((">=", wanted.min_score), ("<=", wanted.max_score)):
        if score is not None:
            where.append(f"k.score {predicate} {int(score)}")
    for predicate, bound in ((">=", wanted.since), ("<", wanted.until)):
        if bound is not None:  # as a number: DuckDB has no moment for each of Python's
            where.append(f"epoch_us(k.updated_at) {predicate} {microseconds(bound)}")
    if wanted.tags:
        where.append(tagged_with(wanted.tags, "k."))
    return where
