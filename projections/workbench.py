"""On what do the folds of a large batch work? A connection, and scratch tables that live for one batch.

A batch's scratch rows are written and deleted inside the batch's own transaction, so they never reach a table's
storage.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pyarrow as pa

from ledger.event import Fact
from ledger.events import FACTS
from ledger.keyring import Keyring
from projections.schema_sql import json_structure

_FIXED_TABLES = """
CREATE TEMP TABLE envelopes (
    position BIGINT, stored_us BIGINT, stream_time TIMESTAMPTZ, type VARCHAR, version INTEGER, event_id VARCHAR,
    time TIMESTAMPTZ, source VARCHAR, actor VARCHAR, org VARCHAR, entity VARCHAR, entity_id VARCHAR,
    trace_id VARCHAR, message_id VARCHAR, causation_id VARCHAR, correlation_id VARCHAR, traceparent VARCHAR,
    owner VARCHAR, expected_version BIGINT, helpful BIGINT, harmful BIGINT);
CREATE TEMP TABLE accepted (
    position BIGINT, stream_time TIMESTAMPTZ, type VARCHAR, version INTEGER, event_id VARCHAR, time TIMESTAMPTZ,
    source VARCHAR, actor VARCHAR, org VARCHAR, entity VARCHAR, entity_id VARCHAR, trace_id VARCHAR,
    message_id VARCHAR, causation_id VARCHAR, correlation_id VARCHAR, traceparent VARCHAR, owner VARCHAR,
    item_version INTEGER, closes BIGINT);
"""

Facts = tuple[type[Fact], ...]
"""The facts that occur in a batch, in the vocabulary's order."""


def table_of(fact: type[Fact]) -> str:
    """The scratch table of one fact's parsed events: position, e (the envelope as a struct), data, fits."""
    return "parsed_" + fact.name.replace(".", "_")


class Workbench:
    """A connection to a view, with the scratch tables of the folds. Used by one thread at a time.

    `keyring` opens what is sealed; one that knows no key leaves every sealed event refused.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, keyring: Keyring | None = None) -> None:
        self.con = con
        self.keyring = keyring or Keyring()
        self._filled: dict[str, None] = {}
        self._loaded: dict[str, None] = {}
        con.execute(_FIXED_TABLES)
        for fact in FACTS.values():
            con.execute(
                f"CREATE TEMP TABLE {table_of(fact)} AS SELECT 0::BIGINT AS position, 0::BIGINT AS stored_us, "
                f"'' AS subject, from_json('{{}}', '{json_structure(fact)}') AS e, '' AS data, true AS fits LIMIT 0"
            )

    def position(self) -> int:
        """How far the view is folded."""
        (row,) = self.rows("SELECT position FROM checkpoints WHERE name = 'views'")
        return int(row[0])

    def run(self, statement: str) -> None:
        """Execute a statement without parameters."""
        self.con.execute(statement)

    def rows(self, query: str) -> list[Any]:
        """All rows of a query without parameters."""
        return self.con.execute(query).fetchall()

    def fill(self, table: str, query: str) -> None:
        """Put a query's rows into a scratch table; they are gone when the batch is."""
        self._filled[table] = None
        self.con.execute(f"INSERT INTO {table} {query}")

    def load(self, name: str, columns: Iterable[Any], schema: pa.Schema) -> str:
        """Make columns of Python values a relation; returns its name, good until the batch is cleared."""
        arrays = [
            column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        name = f"loaded_{name}"
        self.con.register(name, pa.table(arrays, schema=schema))
        self._loaded[name] = None
        return name

    def clear(self) -> None:
        """Forget what this batch filled and loaded; before the commit, so that nothing is stored."""
        for table in self._filled:
            self.con.execute(f"DELETE FROM {table}")
        self._filled.clear()
        for name in self._loaded:
            self.con.unregister(name)
        self._loaded.clear()
