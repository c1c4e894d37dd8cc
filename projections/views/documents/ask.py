"""Queries of documents and their chunks, restricted to what the caller may see.

A document is visible through its scopes and to its owner; a chunk is an item, and visible as items are. A chunk that
the caller does not see is left out, and nothing tells that it is there. An item counts as a chunk where it has the
owner of the document: who ingests a document cannot make others' items a part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger import one_answer
from ledger.event import JsonObject
from ledger.one_answer import size_of
from ledger.privacy.sealed import ERASED
from projections.fold_kit.erased import positions_of
from projections.fold_kit.named_rows import first_row, named_rows
from projections.fold_kit.page import Measured, Page, Selection, Window, fitting_rows, page_of
from projections.fold_kit.sql_text import among_numbers
from projections.views.access import LISTED, listed, readable_by, seen_by
from projections.views.documents.abstracts import with_abstracts
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of
from projections.views.times import with_times

_COLUMNS = """id, title, content_type, url, summary, starts, digests, characters, resource_ids, scopes, owner,
    visibility, version, position, epoch_us(created_at) AS created_at, epoch_us(updated_at) AS updated_at, status"""
_LONG = ("title", "url", "summary", "starts", "digests", "resource_ids", "chunks")
STATED = (
    *("title", "content_type", "url", "summary", "headings", "levels", "starts", "summaries", "digests"),
    *("characters", "resource_ids", "scopes"),
)
"""What an event states of a document, beside its owner and which items are its chunks."""


@dataclass(frozen=True, slots=True)
class Standing:
    """State of a document that a change is checked against. `readable`: the caller may know that it exists."""

    owner: str
    version: int
    status: str
    position: int
    readable: bool
    event_id: str
    chunks: list[str]
    stated: JsonObject


@dataclass(frozen=True, slots=True)
class ChunkState:
    """What a change needs to know of an item that is, or was, a chunk. `position`: where it last changed."""

    owner: str
    status: ItemStatus
    scopes: list[str]
    position: int


@dataclass(frozen=True, slots=True)
class Made:
    """The version of a document that one event made, and the chunks of the version before where it was not removed.

    `saved`: how many chunks the same request saved. `position`: of the version, and of the last of these.
    `released`: how many were held then and are items since.
    """

    id: str
    title: str
    owner: str
    scopes: list[str]
    version: int
    position: int
    sections: int
    chunks: list[str]
    before: list[str]
    saved: int = 0
    released: int = 0


def standing(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, document_id: str) -> Standing | None:
    """The state of one document; None when the id is free."""
    readable, values = readable_by(caller)
    row = first_row(
        cursor,
        f"""SELECT owner, version, status, valid_from AS position, {readable} AS readable, event_id, chunks,
                {", ".join(STATED)}
            FROM (SELECT *, []::VARCHAR[] AS shared_with FROM document_versions)
            WHERE valid_to IS NULL AND org = ? AND id = ?""",
        [*values, org, document_id],
    )
    if row is None:
        return None
    stated = {name: row.pop(name) for name in STATED}
    return Standing(**row, stated=stated)


def chunk_states(cursor: duckdb.DuckDBPyConnection, org: str, ids: Collection[str]) -> dict[str, ChunkState]:
    """The state of each of these items that exists, without a check of access: for the owner of their document."""
    rows = cursor.execute(
        f"SELECT id, owner, status, scopes, position FROM knowledge WHERE org = ? AND id IN ({LISTED})",
        [org, listed([*ids])],
    ).fetchall()
    return {row[0]: ChunkState(*row[1:]) for row in rows}


def scopes_of_chunk(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, item_id: str) -> list[list[str]]:
    """The scopes of each active document of this owner that names this item, or an id without one yet, as a chunk."""
    rows = cursor.execute(
        """SELECT scopes FROM documents
           WHERE org = ? AND owner = ? AND status = 'active' AND list_contains(chunks, ?)""",
        [org, owner, item_id],
    ).fetchall()
    return [scopes for (scopes,) in rows]


def made_by(cursor: duckdb.DuckDBPyConnection, org: str, actors: Collection[str], event_id: str) -> Made | None:
    """The version that an event of one of these actors made."""
    row: tuple[Any, ...] | None = cursor.execute(
        f"""SELECT d.id, d.title, d.owner, d.scopes, d.version, d.valid_from, len(d.headings), d.chunks,
                CASE WHEN b.status = 'active' THEN b.chunks ELSE [] END
            FROM document_versions AS d
            LEFT JOIN document_versions AS b ON b.valid_to = d.valid_from AND b.org = d.org AND b.id = d.id
            WHERE d.org = ? AND d.actor IN ({LISTED}) AND d.event_id = ? AND d.change = 'ingested'""",
        [org, listed(sorted(actors)), event_id],
    ).fetchone()
    if row is None:
        return None
    made = Made(*row)
    first = f"FROM knowledge_versions AS v WHERE v.org = ? AND v.version = 1 AND v.id IN ({LISTED})"
    values = [org, listed(made.chunks)]
    saved, last = cursor.execute(
        f"""SELECT count(*), max(v.valid_from) {first}
            AND v.valid_from IN (SELECT position FROM other_events WHERE org = ? AND causation_id = ?)""",
        [*values, org, event_id],
    ).fetchone() or (0, None)
    (released,) = cursor.execute(
        f"""SELECT count(*) {first} AND v.valid_from > ?
            AND v.id IN (SELECT knowledge_id FROM held_statements WHERE org = ? AND status = 'released')""",
        [*values, made.position, org],
    ).fetchone() or (0,)
    return replace(made, saved=saved, position=max(made.position, last or 0), released=released)


def documents(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, window: Window, *, status: str = "active"
) -> Page:
    """A page of the documents that the caller sees, newest first."""
    seen, seen_values = seen_by(caller)
    where, values = ["org = ?", seen], [org, *seen_values]
    if status != "all":
        where.append("status = ?")
        values.append(status)
    page = page_of(cursor, _COLUMNS, Selection("documents", where, values), window, texts=_LONG)
    shown = with_abstracts(cursor, org, page.results)
    return replace(page, results=[with_times(row, "created_at", "updated_at") for row in shown])


def document(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, document_id: str, limit: int, offset: int
) -> JsonObject | None:
    """One document with its sections and a page of the chunks that the caller reads; None when there is none to see."""
    may, values = readable_by(caller)
    row = first_row(
        cursor,
        f"SELECT {_COLUMNS}, headings, levels, summaries FROM documents WHERE org = ? AND id = ? AND {may}",
        [org, document_id, *values],
    )
    if row is None:
        return None
    (row,) = with_abstracts(cursor, org, [row])
    names = ("heading", "level", "summary", "summary_by")
    stated = (row.pop(name) for name in ("headings", "levels", "summaries", "summaries_by"))
    sections = [dict(zip(names, each, strict=True)) for each in zip(*stated, strict=True)]
    chunks, read_by = _chunks(caller, "d.id = ?")
    source = f"FROM ({chunks}) WHERE status <> 'retired'"
    bound = [org, document_id, *read_by]
    rows = named_rows(
        cursor,
        f"SELECT id, section, made, status {source} ORDER BY ordinal LIMIT {int(limit)} OFFSET {int(offset)}",
        bound,
    )
    (total,) = cursor.execute(f"SELECT count(*) {source}", bound).fetchone() or (0,)
    shown: JsonObject = {**with_times(row, "created_at", "updated_at"), "sections": sections}
    told = _with_contents(cursor, rows, size_of(shown))
    early = {"next": offset + len(told)} if len(told) < len(rows) else {}
    return {**shown, "chunks": told, "count": len(told), "total": total, **early}


_CONTENTS = Measured("knowledge_versions", "strlen(content)", "valid_from")


def _with_contents(cursor: duckdb.DuckDBPyConnection, rows: Sequence[JsonObject], taken: int) -> list[JsonObject]:
    """These chunks with what they say, the first of them that fit into an answer of which so many bytes are taken."""
    read = fitting_rows(cursor, _CONTENTS, [row["made"] for row in rows], taken)
    at = among_numbers("valid_from", read)
    said = cursor.execute(f"SELECT valid_from, content FROM knowledge_versions WHERE {at}").fetchall() if read else []
    contents = dict(said)
    names = ("id", "section", "content", "status")
    chunks = [row | {"content": contents[row["made"]]} for row in rows[: len(read)]]
    return list(one_answer.fitting([{name: chunk[name] for name in names} for chunk in chunks], taken))


def is_erased(cursor: duckdb.DuckDBPyConnection, org: str, document_id: str) -> bool:
    """Whether what the document said last was erased with a person."""
    rows = cursor.execute(
        """SELECT max(valid_from) FROM document_versions
           WHERE org = ? AND id = ? AND change = 'ingested' HAVING count(*) > 0""",
        [org, document_id],
    ).fetchall()
    return bool(positions_of(cursor, [at for (at,) in rows], "title"))


def surroundings(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_ids: Sequence[str], reach: int = 1
) -> dict[str, JsonObject]:
    """What stands around each of these items that is a chunk of a document, by the item's id.

    `document` and `title`, the `headings` above it, and the rows of the up to `reach` items `before` and `after` it,
    in the order of the document. Of all that, what the caller sees.
    """
    found: dict[str, JsonObject] = {}
    places = _places(cursor, org, caller, item_ids)
    wanted: dict[str, list[str]] = {}
    for document_id in dict.fromkeys(place["document"] for place in places.values()):
        wanted[document_id] = _active(cursor, org, caller, document_id)
    for item_id, place in places.items():
        order = wanted[place["document"]]
        if item_id not in order:
            continue
        at = order.index(item_id)
        found[item_id] = place | {"before": order[max(0, at - reach) : at], "after": order[at + 1 : at + 1 + reach]}
    neighbours = {each for part in found.values() for each in (*part["before"], *part["after"])}
    items = _items(cursor, org, neighbours)
    for part in found.values():
        for side in ("before", "after"):
            part[side] = [items[each] for each in part[side]]
    return found


def headings_above(headings: Sequence[str], levels: Sequence[int], section: int) -> list[str]:
    """The heading of a section after those that it stands below; nothing for what stands before the first one."""
    above = [headings[section]] if headings[section] else []
    level = levels[section]
    for number in range(section - 1, -1, -1):
        if headings[number] and levels[number] < level:
            level = levels[number]
            above.insert(0, headings[number])
    return above


# The section of a chunk is the last one that begins with it or before it.
_CHUNKS = """
SELECT d.id AS document, d.title, d.headings, d.levels, c.ordinal, k.id, k.version_position AS made, k.status,
    len(list_filter(d.starts, lambda s: s <= c.ordinal)) - 1 AS section
FROM (
    SELECT org, id, title, headings, levels, starts, owner, scopes, shared_with,
        unnest(chunks) AS item_id, generate_subscripts(chunks, 1) - 1 AS ordinal
    FROM documents AS d WHERE status = 'active' AND org = ? AND {which}
) AS c JOIN documents AS d ON d.org = c.org AND d.id = c.id
JOIN knowledge AS k ON k.org = c.org AND k.id = c.item_id AND k.owner = d.owner
"""


def _chunks(caller: Caller, which: str) -> tuple[str, list[str]]:
    """The chunks that the caller reads of the active documents for which `which` holds, and the query's last values."""
    may, values = readable_by(caller, "k.")
    of_document, document_values = readable_by(caller, "d.")
    return f"{_CHUNKS.format(which=which)} WHERE {may} AND {of_document}", [*values, *document_values]


def _places(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_ids: Sequence[str]
) -> dict[str, JsonObject]:
    """The document, title and headings of each of these items that is a chunk; of several documents, of the first."""
    chunks, values = _chunks(caller, f"list_has_any(chunks, (SELECT list(id) FROM ({LISTED}) AS asked(id)))")
    rows = named_rows(
        cursor,
        f"SELECT * EXCLUDE (made, status) FROM ({chunks}) WHERE id IN ({LISTED}) ORDER BY document DESC",
        [org, listed(item_ids), *values, listed(item_ids)],
    )
    return {
        row["id"]: {
            "document": row["document"],
            "title": row["title"],
            "headings": headings_above(row["headings"], row["levels"], row["section"]),
        }
        for row in rows
    }


def _active(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, document_id: str) -> list[str]:
    """The items of a document's chunks that the caller reads and that hold, in its order."""
    chunks, values = _chunks(caller, "d.id = ?")
    rows: list[tuple[Any, ...]] = cursor.execute(
        f"SELECT id FROM ({chunks}) WHERE status = 'active' ORDER BY ordinal", [org, document_id, *values]
    ).fetchall()
    return [item_id for (item_id,) in rows]


def _items(cursor: duckdb.DuckDBPyConnection, org: str, ids: Collection[str]) -> dict[str, JsonObject]:
    """These items as lists show them; the caller reads them."""
    if not ids:
        return {}
    rows = named_rows(
        cursor,
        f"SELECT {ITEM_COLUMNS} FROM knowledge WHERE org = ? AND id IN ({LISTED})",
        [org, listed(sorted(ids))],
    )
    return {row["id"]: item_of(row) for row in rows}


def erased_title(row: JsonObject) -> bool:
    """Whether a document's title may have been erased; `is_erased` says whether it was."""
    return bool(row["title"] == ERASED)
