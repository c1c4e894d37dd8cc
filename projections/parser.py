"""In what are bodies parsed? A small DuckDB in memory, beside the view's: relations in, relations out."""

from __future__ import annotations

import duckdb
import pyarrow as pa

_MEMORY = "512MB"


class Parser:
    """It knows nothing but what it is handed. Used by one thread at a time."""

    def __init__(self) -> None:
        self.con = duckdb.connect(":memory:")
        self.con.execute(f"SET memory_limit = '{_MEMORY}'")
        self.con.execute("SET TimeZone = 'UTC'")
        self.con.execute("SET threads = 1")
        # Columns of JSON come back as JSON, not as texts that have to be parsed anew.
        self.con.execute("SET arrow_lossless_conversion = true")

    def select(self, query: str, **relations: pa.Table) -> pa.Table:
        """The rows of a query over the relations named."""
        for name, table in relations.items():
            self.con.register(name, table)
        try:
            return self.con.execute(query).to_arrow_table()
        finally:
            for name in relations:
                self.con.unregister(name)

    def close(self) -> None:
        """Give the memory back."""
        self.con.close()
