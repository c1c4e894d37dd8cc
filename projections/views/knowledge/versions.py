"""Queries of single versions of items, with everything that reverting to one needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from kledger.contract.knowledge import Source
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeReverted
from projections.views.knowledge.ask import LISTED, listed, parsed


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
        return KnowledgeReverted(
            to_version=self.version,
            types=self.types,
            task=self.task,
            content=self.content,
            tags=self.tags,
            scopes=self.scopes,
            resource_ids=self.resource_ids,
            source=self.source,
            score=self.score,
            cause=cause,
        )


_COLUMNS = """v.version, v.types, v.task, v.content, v.tags::VARCHAR, v.scopes, v.resource_ids,
    v.source::VARCHAR, v.score, s.owner, s.version, s.status, s.writers, v.erased"""
_TABLES = "knowledge_versions AS v JOIN knowledge_state AS s ON s.org = v.org AND s.id = v.id"


def version_of(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, version: int) -> Version | None:
    """One version; None when the item never had it. Does not check access."""
    row = cursor.execute(
        f"SELECT {_COLUMNS} FROM {_TABLES} WHERE v.org = ? AND v.id = ? AND v.version = ?", [org, item_id, version]
    ).fetchone()
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
    rows = cursor.execute(
        f"SELECT v.id, {_COLUMNS} FROM {_TABLES} WHERE v.org = ? AND v.id IN ({LISTED})", [org, listed(list(wanted))]
    ).fetchall()
    return {row[0]: _version(row[1:]) for row in rows if row[1] == wanted[row[0]]}


def _version(row: Sequence[Any]) -> Version:
    return Version(*[*row[:4], parsed(row[4]), *row[5:7], _source(row[7]), *row[8:]])


def _source(text: str | None) -> Source:
    fields = {name: value for name, value in parsed(text).items() if value is not None}
    return Source.model_validate(fields, strict=False)
