"""Changes for the vector store since a position: versions that began and versions that ended, from the view.

The entities of an ACL and the owner may read an item like its scopes: the store has all of them as scopes, so that its
own query filters by access.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import duckdb

from projections.engine.duckdb import checkpoint_of
from projections.fold_kit.visibility import readers
from projections.vectors.wire import Close, Store

MOST_CHARACTERS = 8_000_000
"""The most characters of the texts in one request, unless a single change has more: frames are limited in size."""

_CHANGED = f"""
WITH changed AS (
    SELECT valid_from AS moved_at, valid_from FROM knowledge_versions
    WHERE org = $org AND valid_from > $after AND valid_from <= $folded AND NOT erased
    UNION ALL
    SELECT valid_to, valid_from FROM knowledge_versions
    WHERE org = $org AND valid_to > $after AND valid_to <= $folded AND valid_from <= $after AND NOT erased
), few AS (FROM changed ORDER BY moved_at LIMIT $most)
SELECT c.moved_at, c.moved_at = v.valid_from, v.id, v.version, v.valid_to, v.task, v.content,
    {readers("v.")}, v.types, v.owner, v.status <> 'active', v.visibility
FROM changed c JOIN knowledge_versions v ON v.valid_from = c.valid_from
WHERE c.moved_at <= (SELECT max(moved_at) FROM few)
ORDER BY c.moved_at, c.moved_at = v.valid_from
"""


def changes_after(
    cursor: duckdb.DuckDBPyConnection, org: str, after: int, most: int
) -> tuple[list[Store | Close], int]:
    """About `most` changes after position `after`, and the position up to which they are complete.

    They hold nothing of later positions, though events are folded meanwhile or a version ends in a later batch: whoever
    examines the vectors at that position would take it for damage. Versions that were erased with a person are not
    searchable and are left out.
    """
    folded, _ = checkpoint_of(cursor)
    if not _anything_after(cursor, after):
        return [], folded
    cursor.execute(_CHANGED, {"org": org, "after": after, "most": most, "folded": folded})
    changes: list[Store | Close] = []
    upto = folded
    size = 0
    while (row := cursor.fetchone()) is not None:
        if size > MOST_CHARACTERS and row[0] != upto:
            return _as_of(changes, upto), upto
        changes.append(_change(row))
        upto, size = row[0], size + len(row[5]) + len(row[6])
    upto = upto if len(changes) >= most else folded
    return _as_of(changes, upto), upto


def in_requests(stores: Sequence[Store]) -> Iterator[list[Store]]:
    """These in their order, in lists that each fit one request."""
    part: list[Store] = []
    size = 0
    for store in stores:
        own = len(store.task) + len(store.content)
        if part and size + own > MOST_CHARACTERS:
            yield part
            part, size = [], 0
        part.append(store)
        size += own
    if part:
        yield part


def _as_of(changes: list[Store | Close], upto: int) -> list[Store | Close]:
    """The changes with the versions open that end after `upto`: a later batch closes them."""
    return [
        replace(change, valid_to=None) if isinstance(change, Store) and (change.valid_to or 0) > upto else change
        for change in changes
    ]


def _anything_after(cursor: duckdb.DuckDBPyConnection, after: int) -> bool:
    """Whether any version began or ended since: mostly none did, and this check takes a twentieth of the query."""
    later = f"SELECT 1 FROM knowledge_versions WHERE valid_from > {int(after)}"
    ended = f"SELECT 1 FROM knowledge_versions WHERE valid_to > {int(after)}"
    return bool((cursor.execute(f"SELECT EXISTS ({later}) OR EXISTS ({ended})").fetchone() or (True,))[0])


def _change(row: tuple[Any, ...]) -> Store | Close:
    at, made, item_id, version, valid_to, task, content, scopes, types, owner, retired, visibility = row
    if not made:
        return Close(item_id, version, valid_to)
    return Store(item_id, version, at, task, content, scopes, types, owner, at, valid_to, retired, visibility)
