"""Parser: a small DuckDB in memory, apart from the view's, in which bodies are parsed; relations in, relations out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

_MEMORY = "512MB"


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

    def select(self, query: str, **relations: pa.Table) -> pa.Table:
        """The rows of a query over the relations named."""
        with self._over(relations):
            return self.con.execute(query).to_arrow_table()

    def rows(self, query: str, **relations: pa.Table) -> list[Any]:
        """The same, as tuples."""
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
