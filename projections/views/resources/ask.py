"""Queries of resources, now and at any position, restricted to what the caller may see.

Every query has the caller's access in its SQL, as for items (projections/views/knowledge/ask.py): a resource is visible
through its scopes, to those it is shared with (sharing the secret shows the resource), and to its owner. The secret is
never opened here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import orjson

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.privacy.sealed import ERASED
from ledger.readers import readers
from projections.fold_kit.erased import positions_of
from projections.fold_kit.named_rows import first_row
from projections.fold_kit.page import Measured, Page, Selection, Window, bytes_of, latest, page_of
from projections.views.access import LISTED, listed, readable_by, seen_by
from projections.views.resources.tables import HAS_SECURE
from projections.views.times import with_times

_COLUMNS = """id, title, body, has_secure, content_type, metadata, expired, scopes, owner, visibility, shared_with,
    version, position, epoch_us(created_at) AS created_at, epoch_us(updated_at) AS updated_at, status"""
_LONG = ("title", "body", "metadata")
_STATEMENT = ("title", "body", "content_type", "metadata", "scopes", "shared_with")


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a resource that a change is checked against. `readable`: the caller may know that it exists."""

    owner: str
    version: int
    status: str
    position: int
    readable: bool
    event_id: str
    sealed: str
    """The sealed secret; empty when there is none."""
    statement: tuple[Any, ...]
    erased: bool
    """Its content was erased with a person."""


def standing(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, resource_id: str, as_of: int | None = None
) -> Standing | None:
    """The state of one resource, now or as of a position; None when the id was free."""
    held = "valid_to IS NULL" if as_of is None else "valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)"
    readable, values = readable_by(caller)
    row = first_row(
        cursor,
        f"""SELECT owner, version, status, valid_from AS position, {readable} AS readable, event_id,
                    secure_body AS sealed, {", ".join(_STATEMENT)}
                FROM resource_versions WHERE {held} AND org = ? AND id = ?""",
        [*values, *([] if as_of is None else [as_of, as_of]), org, resource_id],
    )
    if row is None:
        return None
    stated = {name: row.pop(name) for name in _STATEMENT}
    stated["metadata"] = orjson.loads(stated["metadata"])
    gone = stated["title"] == ERASED and is_erased(cursor, org, resource_id, row["version"])
    return Standing(**row, statement=tuple(stated.values()), erased=gone)


def is_erased(cursor: duckdb.DuckDBPyConnection, org: str, resource_id: str, version: int) -> bool:
    """Whether this version's content was erased; that is in the last save up to it."""
    saved = cursor.execute(
        """SELECT max(valid_from) FROM resource_versions
           WHERE org = ? AND id = ? AND change = 'saved' AND version <= ? HAVING count(*) > 0""",
        [org, resource_id, version],
    ).fetchall()
    return bool(positions_of(cursor, [at for (at,) in saved], "title"))


def kept_version(
    cursor: duckdb.DuckDBPyConnection, org: str, actors: Collection[str], event_id: str
) -> tuple[str, int, int] | None:
    """(id, version, position) of the version that an event of one of these actors made."""
    row: tuple[str, int, int] | None = cursor.execute(
        f"""SELECT id, version, valid_from FROM resource_versions
            WHERE org = ? AND actor IN ({LISTED}) AND event_id = ?""",
        [org, listed(sorted(actors)), event_id],
    ).fetchone()
    return row


def resource(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, resource_id: str, as_of: int | None = None
) -> tuple[JsonObject, str, bool] | None:
    """One resource, its sealed secret, and whether this is its present version; None when the caller may not see it.

    As of a position, it has to be readable both then and now: access that was withdrawn since stays withdrawn.
    """
    readable, values = readable_by(caller)
    source, where = "resources", f"org = ? AND id = ? AND {readable}"
    bound: list[Any] = [org, resource_id, *values]
    if as_of is not None:
        where, bound = f"{where} AND EXISTS (FROM resources WHERE {where})", [as_of, *bound, *bound]
        source = "resources_at(?)"
    row = first_row(cursor, f"SELECT {_COLUMNS} FROM {source} WHERE {where}", bound)
    if row is None:
        return None
    document = _as_json(row, "created_at", "updated_at")
    ((sealed, current),) = cursor.execute(
        "SELECT secure_body, valid_to IS NULL FROM resource_versions WHERE valid_from = ?", [document["position"]]
    ).fetchall()
    return document, sealed, current


def resources(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    window: Window,
    *,
    content_type: str | None = None,
    status: str = "active",
    as_of: int | None = None,
) -> Page:
    """A page of the resources that the caller sees, newest first, without their secrets."""
    seen, seen_values = seen_by(caller)
    where, values = ["org = ?", seen], [org, *seen_values]
    for column, wanted in (("content_type", content_type), ("status", None if status == "all" else status)):
        if wanted is not None:
            where.append(f"{column} = ?")
            values.append(wanted)
    source = "resources"
    if as_of is not None:
        source = f"resources_at({int(as_of)})"
        where.append(f"id IN (SELECT id FROM resources WHERE org = ? AND {seen})")
        values += [org, *seen_values]
    page = page_of(cursor, _COLUMNS, Selection(source, where, values), window, texts=_LONG)
    return replace(page, results=[_as_json(row, "created_at", "updated_at") for row in page.results])


def readable_ids(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> set[str]:
    """The ids out of `ids` of resources that the caller may read."""
    readable, values = readable_by(caller)
    rows = cursor.execute(
        f"SELECT id FROM resources WHERE org = ? AND id IN ({LISTED}) AND {readable}", [org, listed(ids), *values]
    ).fetchall()
    return {row[0] for row in rows}


def readers_of(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> dict[str, list[str]]:
    """The readers of each of the resources out of `ids` that the caller may read, by id."""
    readable, values = readable_by(caller)
    rows = cursor.execute(
        f"""SELECT id, scopes, shared_with, owner FROM resources WHERE org = ? AND id IN ({LISTED}) AND {readable}""",
        [org, listed(ids), *values],
    ).fetchall()
    return {row[0]: readers(*row[1:]) for row in rows}


_VERSIONS = Measured("resource_versions", bytes_of(_LONG), "valid_from")
_VERSION_COLUMNS = f"""version, change, title, body, {HAS_SECURE} AS has_secure, content_type, metadata,
    scopes, owner, shared_with, status, valid_from, valid_to, epoch_us(valid_from_time) AS valid_from_time,
    epoch_us(valid_to_time) AS valid_to_time, actor, trace_id, message_id, event_id"""


def versions(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, resource_id: str, before: int | None = None
) -> tuple[list[JsonObject], int | None] | None:
    """Every version before a position that the caller may read by the scopes it had then, oldest first, without
    secrets: the latest that fit into an answer, and the position before which the others are.

    None when the caller may not read the resource as it is now.
    """
    if not readable_ids(cursor, org, caller, [resource_id]):
        return None
    readable, values = readable_by(caller)
    earlier = "" if before is None else f"AND valid_from < {int(before)}"
    found = f"FROM resource_versions WHERE org = ? AND id = ? AND {readable} {earlier}"
    rows, following = latest(cursor, _VERSIONS, found, [org, resource_id, *values], _VERSION_COLUMNS)
    return [_as_json(row, "valid_from_time", "valid_to_time") for row in rows], following


def _as_json(row: JsonObject, *times: str) -> JsonObject:
    return with_times(row, *times) | {"metadata": orjson.loads(row["metadata"])}
