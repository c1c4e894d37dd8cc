"""View files in DuckDB: settings, tables, schema version, transactions and the checkpoint row.

What does not fit into memory is spilled into a directory beside the file, never into the one that the program happens
to be run from: it has what persons said, in clear.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pyarrow as pa

from projections.engine.analyst_views import TABLES as ANALYST_VIEWS
from projections.engine.registry import VIEWS
from projections.engine.schema_version import SCHEMA_VERSION
from projections.fold_kit.sql_text import text
from projections.views.recalls import retention

_NO_CHECKPOINT_BELOW = "1GB"

# For each bound parameter, DuckDB's client tries to import pandas. Where it is not installed, Python repeats the search
# each time: a quarter of the time of reading an item. None in sys.modules makes the import fail at once.
if find_spec("pandas") is None:
    pa.array([])  # let Arrow look for pandas first: it cannot handle the None
    sys.modules["pandas"] = None  # type: ignore[assignment]

_CHECKPOINTS = f"""
CREATE TABLE checkpoints (
    name VARCHAR NOT NULL, position BIGINT NOT NULL, stored_us BIGINT NOT NULL, schema_version INTEGER NOT NULL);
COMMENT ON TABLE checkpoints IS 'How far the log is folded into this file; moves in the same transaction as the views';
COMMENT ON COLUMN checkpoints.position IS 'Last log position that is folded';
COMMENT ON COLUMN checkpoints.stored_us IS 'When the log kept that event, microseconds since 1970 UTC';
INSERT INTO checkpoints VALUES ('views', 0, 0, {SCHEMA_VERSION});
CREATE MACRO health() AS TABLE
    SELECT name, position, make_timestamptz(stored_us) AS time,
        (SELECT count(*) FROM refused_events) AS refused_events,
        (SELECT count(*) FROM knowledge_state WHERE status = 'active') AS active_items
    FROM checkpoints;
COMMENT ON MACRO TABLE health IS 'How far this file is, and how many events were refused';
"""


def open_view(
    path: Path | None, recall_days: int | None = None, *, unsigned_extensions: bool = False
) -> duckdb.DuckDBPyConnection:
    """Open a view file (None: in memory), creating its tables when it is new.

    A new one keeps the detail of recalls for `recall_days`, None for ever; an old one as it did. With
    `unsigned_extensions` DuckDB checks no signature of what is loaded, until the setting is taken back.
    Raises duckdb.IOException when another process has it open.
    """
    con = duckdb.connect(
        str(path) if path else ":memory:",
        config={"temp_directory": _spills_of(path), "allow_unsigned_extensions": unsigned_extensions},
    )
    _prepare(con, "1GB", recall_days)
    return con


def spilled_of(path: Path) -> Path:
    """The directory into which an open view file spills. One that was killed leaves it."""
    return path.with_name(path.name + ".tmp")


def _spills_of(path: Path | None) -> str:
    return str(spilled_of(path)) if path else ""


def open_new_view(path: Path, *, memory_limit: str, recall_days: int | None = None) -> duckdb.DuckDBPyConnection:
    """Create a view file without a write-ahead log, which would write everything twice. Raises duckdb.IOException.

    The caller ends with a CHECKPOINT, or discards the file.
    """
    con = duckdb.connect(":memory:", config={"temp_directory": _spills_of(path)})
    con.execute(f"ATTACH {text(str(path))} AS view (RECOVERY_MODE no_wal_writes)")
    con.execute("USE view")
    _prepare(con, memory_limit, recall_days)
    return con


def _prepare(con: duckdb.DuckDBPyConnection, memory_limit: str, recall_days: int | None) -> None:
    """Apply the settings, and create the tables when the file is new."""
    con.execute(f"SET memory_limit = '{memory_limit}'")
    con.execute("SET GLOBAL TimeZone = 'UTC'")  # for the cursors of readers too, which take no setting of `con` alone
    # The 16 MB default stalls commits for seconds; checkpoints are explicit instead.
    con.execute(f"SET checkpoint_threshold = '{_NO_CHECKPOINT_BELOW}'")
    con.execute("SET preserve_insertion_order = false")
    # Strings that repeat are stored once in a segment (numbers are always packed), which takes no more of a checkpoint
    # than writing them out. What would make single strings shorter is off: it took most of a checkpoint and made
    # reading ten items five times slower.
    con.execute("SET disabled_compression_methods = 'fsst,dict_fsst'")
    # A query runs on the thread that calls it. Measured on two cores: with one worker more, which all queries share,
    # small statements take twice the processor time and are not faster.
    con.execute("SET threads = 1")
    if not con.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'checkpoints'").fetchone():
        create_tables(con, recall_days)


def create_tables(con: duckdb.DuckDBPyConnection, recall_days: int | None) -> None:
    """Create every table, view and macro in an empty database, all or none."""
    with transaction(con):
        for view in VIEWS:
            con.execute(view.tables)
        con.execute(_CHECKPOINTS)
        con.execute(ANALYST_VIEWS)
        retention.begin(con, recall_days)


@contextmanager
def transaction(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Commit when the body ends, roll back when it raises."""
    con.execute("BEGIN TRANSACTION")
    try:
        yield
        con.execute("COMMIT")
    except BaseException:
        end_left_over(con)
        raise


def checkpoint(con: duckdb.DuckDBPyConnection) -> None:
    """Write all that is committed into the file, with all cores. Nothing else may use the database meanwhile.

    A worker may take the statement CHECKPOINT, and has no other one to help it on two cores, while the caller's thread
    polls. So a commit makes the checkpoint: that is done by the caller's thread, and the workers help.
    """
    con.execute(f"SET threads = {os.cpu_count() or 1}")
    con.execute("SET checkpoint_threshold = '1B'")
    con.execute("UPDATE checkpoints SET position = position")
    con.execute(f"SET checkpoint_threshold = '{_NO_CHECKPOINT_BELOW}'")
    con.execute("CHECKPOINT")  # what the commit could not write; most often nothing
    con.execute("SET threads = 1")


def end_left_over(con: duckdb.DuckDBPyConnection) -> None:
    """Roll back an open transaction. When there is no memory, even that fails; then the next fold does it."""
    with suppress(duckdb.Error):
        con.execute("ROLLBACK")


def checkpoint_of(con: duckdb.DuckDBPyConnection) -> tuple[int, int]:
    """The file's checkpoint: (position, when the log stored that event, in microseconds)."""
    row = con.execute("SELECT position, stored_us FROM checkpoints WHERE name = 'views'").fetchone()
    if row is None:
        raise RuntimeError("the view file has no checkpoint row: it is damaged; delete it, it is rebuilt from the log")
    return int(row[0]), int(row[1])


def schema_version_of(con: duckdb.DuckDBPyConnection) -> int:
    """The version of the tables and folds that wrote the file."""
    row = con.execute("SELECT schema_version FROM checkpoints WHERE name = 'views'").fetchone()
    return int(row[0]) if row else 0
