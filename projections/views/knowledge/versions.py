"""Queries of single versions of items, with everything that reverting to one needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from kledger.contract.knowledge import Source
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeReverted
from projections.fold_kit.named_rows import first_row, named_rows
from projections.views.access import LISTED, listed
from projections.views.knowledge.ask import STATED, parsed, source_of


@dataclass(frozen=True, slots=True)
class Version:
    """One version as it was made, with its item's present version (`current`) and status.

    `erased`: its content was erased with a person.
    """

    version: int
    types: list[str]
    task: str
    content: str
    tags: JsonObject
    scopes: list[str]
    resource_ids: list[str]
    source: Source
    score: int
    owner: str
    current: int
    status: str
    writers: list[str] | None
    erased: bool

    def stated_anew(self, cause: str | None = None) -> KnowledgeReverted:
        """The event that reverts the item to this version."""
        stated = {name: getattr(self, name) for name in STATED}
        return KnowledgeReverted(to_version=self.version, cause=cause, **stated)


_COLUMNS = """v.version, v.types, v.task, v.content, v.tags, v.scopes, v.resource_ids, v.source, v.score, s.owner,
    s.version AS current, s.status, s.writers, v.erased"""
_TABLES = "knowledge_versions AS v JOIN knowledge_state AS s ON s.org = v.org AND s.id = v.id"


def version_of(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, version: int) -> Version | None:
    """One version; None when the item never had it. Does not check access."""
    row = first_row(
        cursor,
        f"SELECT {_COLUMNS} FROM {_TABLES} WHERE v.org = ? AND v.id = ? AND v.version = ?",
        [org, item_id, version],
    )
    return None if row is None else _version(row)


def version_made_at(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, position: int) -> int:
    """The version number of an item as of this position; 0 when it did not exist."""
    row = cursor.execute(
        "SELECT max(version) FROM knowledge_versions WHERE org = ? AND id = ? AND valid_from <= ?",
        [org, item_id, position],
    ).fetchone()
    return 0 if row is None else int(row[0] or 0)


def versions_of(cursor: duckdb.DuckDBPyConnection, org: str, wanted: Mapping[str, int]) -> dict[str, Version]:
    """The wanted version of each item, by the item's id, where it exists."""
    rows = named_rows(
        cursor,
        f"SELECT v.id, {_COLUMNS} FROM {_TABLES} WHERE v.org = ? AND v.id IN ({LISTED})",
        [org, listed(list(wanted))],
    )
    by_id = [(row.pop("id"), row) for row in rows]
    return {item_id: _version(row) for item_id, row in by_id if row["version"] == wanted[item_id]}


def _version(row: JsonObject) -> Version:
    return Version(**row | {"tags": parsed(row["tags"]), "source": source_of(row["source"])})
