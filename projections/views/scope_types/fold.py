"""Fold of rows of scope types: one row for each type, with its last registration."""

from __future__ import annotations

import duckdb

from ledger.events.scope_type import ScopeTypeRegistered
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, text
from projections.fold_kit.workbench import Facts, Workbench, table_of

TABLES = """
CREATE TABLE scope_types (
    org VARCHAR NOT NULL, type VARCHAR NOT NULL, priority DOUBLE NOT NULL, position BIGINT NOT NULL,
    time TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE scope_types IS 'Registered types of scopes, beside user, project, agent, team, org and public';
COMMENT ON COLUMN scope_types.priority IS 'Its place among user 6, project 5, agent 4, team 3, org 2, public 1';
COMMENT ON COLUMN scope_types.position IS 'Log position of the event that registered it last';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Keep the last registration of each type."""
    if ScopeTypeRegistered not in facts:
        return
    rows = table_of(ScopeTypeRegistered)
    bench.run(
        f"DELETE FROM scope_types USING {rows} s WHERE scope_types.org = s.org AND scope_types.type = s.entity_id"
    )
    bench.run(f"""
        INSERT INTO scope_types
        SELECT org, entity_id, d.priority, position, stream_time FROM {rows}
        QUALIFY row_number() OVER (PARTITION BY org, entity_id ORDER BY position DESC) = 1
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Keep the registrations of types in a few events."""
    last = {(c.org, c.entity_id): (c, c.fact) for c in counted if isinstance(c.fact, ScopeTypeRegistered)}
    if not last:
        return
    pairs = ", ".join(f"({text(org)}, {text(kind)})" for org, kind in last)
    con.execute(f"DELETE FROM scope_types WHERE (org, type) IN ({pairs})")
    insert(
        con,
        "scope_types",
        ((c.org, c.entity_id, fact.priority, c.position, Moment(c.stored_us)) for c, fact in last.values()),
    )
