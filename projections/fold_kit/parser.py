"""Parser: a small DuckDB in memory, apart from the view's, in which bodies are parsed; relations in, relations out.

A query over a few rows takes most of its time to be planned, and a plan over a relation of one batch is of no use for
the next one. So few rows are copied into a table that stays, over which each query is planned once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

_MEMORY = "512MB"
_FEW_ROWS, _FEW_BYTES = 512, 1_000_000
"""What is copied: more is read in place, where to plan a query is the least of its cost."""
Select = Callable[[str], pa.Table]
"""The rows of a query."""


class Parser:
    """Runs queries over the relations that it is given, and keeps no state. Used by one thread at a time."""

    def __init__(self) -> None:
        # Bodies are in clear here, so nothing is spilled to a disk.
        self.con = duckdb.connect(":memory:", config={"temp_directory": ""})
        self.con.execute(f"SET memory_limit = '{_MEMORY}'")
        self.con.execute("SET TimeZone = 'UTC'")
        self.con.execute("SET threads = 1")
        # The queries are large and read each row once: optimizing one takes longer than it saves in a batch.
        self.con.execute("PRAGMA disable_optimizer")
        # JSON columns come back as JSON, not as texts that have to be parsed again.
        self.con.execute("SET arrow_lossless_conversion = true")
        self._planned: dict[str, str] = {}
        """The name of each prepared statement, by its query."""
        self._left: dict[str, bool] = {}
        """Each table, and whether it may have rows that could not be removed."""

    @contextmanager
    def over(self, name: str, relation: pa.Table) -> Iterator[Select]:
        """Within the block, the rows of queries over a relation. A name always has the same columns."""
        if len(relation) > _FEW_ROWS or relation.nbytes > _FEW_BYTES:
            with self._over({name: relation}):
                yield lambda query: self.con.execute(query).to_arrow_table()
            return
        self._fill(name, relation)
        try:
            yield self._select_planned
        finally:
            self._empty(name)  # what persons said stays here no longer than it is read

    def _fill(self, name: str, relation: pa.Table) -> None:
        """Have the rows of a relation, and no others, in the table of its name."""
        with self._over({"given": relation}):
            if name not in self._left:
                self.con.execute(f"CREATE TABLE {name} AS SELECT * FROM given LIMIT 0")
            elif self._left[name]:
                self._empty(name)
            self._left[name] = True
            self.con.execute(f"INSERT INTO {name} SELECT * FROM given")

    def _empty(self, name: str) -> None:
        self.con.execute(f"TRUNCATE {name}")
        self._left[name] = False

    def _select_planned(self, query: str) -> pa.Table:
        if query not in self._planned:
            statement = f"planned_{len(self._planned)}"
            self.con.execute(f"PREPARE {statement} AS {query}")
            self._planned[query] = statement
        return self.con.execute(f"EXECUTE {self._planned[query]}").to_arrow_table()

    def rows(self, query: str, **relations: pa.Table) -> list[Any]:
        """The rows of a query over the relations named, as tuples."""
        with self._over(relations):
            return self.con.execute(query).fetchall()

    @contextmanager
    def _over(self, relations: dict[str, pa.Table]) -> Iterator[None]:
        for name, table in relations.items():
            self.con.register(name, table)
        try:
            yield
        finally:
            for name in relations:
                self.con.unregister(name)

    def close(self) -> None:
        """Free the memory."""
        self.con.close()
