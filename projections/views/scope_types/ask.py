"""Queries of the registered types of scopes and their priorities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb

from kledger.contract.scopes import PRIORITY, further_types


@dataclass(frozen=True, slots=True)
class ScopeType:
    """A registered type; `position` is that of the event that registered it last."""

    type: str
    priority: float
    position: int


def registered(cursor: duckdb.DuckDBPyConnection, org: str) -> dict[str, ScopeType]:
    """The registered types of a tenant, by name; built-in ones are not among them."""
    rows = cursor.execute("SELECT type, priority, position FROM scope_types WHERE org = ? ORDER BY type", [org])
    return {row[0]: ScopeType(*row) for row in rows.fetchall()}


def priorities(cursor: duckdb.DuckDBPyConnection, org: str, visible: Iterable[str]) -> Mapping[str, float]:
    """How specific each type of scope is; looked up only where one of `visible` is of a registered type."""
    if not further_types(visible):
        return PRIORITY
    return {**PRIORITY, **{name: each.priority for name, each in registered(cursor, org).items()}}
