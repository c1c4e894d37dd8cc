"""One SELECT of an analyst over HTTP: its rows, column by column, within limits.

Limited are its time, its rows, the bytes of its answer, and the memory by which the node may grow for it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from kledger.contract.errors import IllegalQuery
from ledger.event import JsonObject
from ledger.runtime.damaged_file import is_damaged
from projections.analysts.memory_watch import MIB, analyst_limits, watched
from projections.analysts.other_names import with_other_names
from projections.analysts.told_rows import told_rows

REFUSAL = "kledger_refusal"
"""The function of a prepared instance that returns why a statement may not run."""
_UNREADABLE = "DuckDB refuses the query, for a reason that cannot be read: simplify it"
_ONLY_AS_TEXT = re.compile(r"\b(INTERVAL|BIT|BLOB|BIGNUM|UHUGEINT|TIME WITH TIME ZONE|GEOMETRY|VARIANT)\b")
"""Types of DuckDB that Arrow has as bytes, not at all, or as something else; they are told as DuckDB writes them."""
_BATCH = 2_048  # rows; DuckDB's vector size, so that the limits are checked while the result grows


def answer_to(connection: duckdb.DuckDBPyConnection, statement: str) -> JsonObject:
    """`columns`, `types` and `rows` of one SELECT, columns of equal names included. Raises IllegalQuery."""
    limits = analyst_limits()
    table = sql_read_only(connection, statement, timeout_seconds=limits.seconds, byte_limit=limits.bytes)
    return {
        "columns": table.column_names,
        "types": [str(field.type) for field in table.schema],
        "rows": told_rows(table),
        "truncated": False,
    }


def sql_read_only(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    *,
    timeout_seconds: float = 30.0,
    row_limit: int = 100_000,
    byte_limit: int = 64 * MIB,
) -> pa.Table:
    """The answer to one SELECT on the prepared instance of `connection`, under the same guard as Quack.

    Runs on a cursor of its own in a read-only transaction; safe to call from any thread. Raises
    IllegalQuery when the guard refuses, DuckDB reports an error, the time is over, it takes too much memory, or more
    than `row_limit` rows or `byte_limit` bytes come back. Raises
    DuckDB's own error for a damaged block of the file.
    """
    cursor = connection.cursor()
    out_of_time, too_large = threading.Event(), threading.Event()

    def interrupt(why: threading.Event) -> None:
        why.set()
        cursor.interrupt()

    clock = threading.Timer(timeout_seconds, interrupt, (out_of_time,))
    clock.daemon = True
    try:
        answer = cursor.execute(f"SELECT {REFUSAL}(?::VARCHAR)", [statement]).fetchone()
        reason = answer[0] if answer else None
        if reason is not None:
            raise IllegalQuery(reason)
        cursor.execute("BEGIN TRANSACTION READ ONLY")
        clock.start()
        with watched(lambda: interrupt(too_large), analyst_limits().memory):
            cursor.execute(statement)
            columns = [(str(name), str(kind)) for name, kind, *_ in cursor.description or ()]
            if any(_ONLY_AS_TEXT.search(kind) for _, kind in columns):
                told = cursor.sql(statement).project(_told(columns))
                return _rows(told.to_arrow_reader(_BATCH), row_limit, byte_limit)
            return _rows(cursor.to_arrow_reader(_BATCH), row_limit, byte_limit)
    except RuntimeError as error:  # the binding raises this only for a lone surrogate
        raise IllegalQuery("the statement is not Unicode text") from error
    except UnicodeDecodeError as error:  # DuckDB cuts a text in its message within a character
        raise IllegalQuery(_UNREADABLE) from error
    except (duckdb.Error, OSError, MemoryError) as error:
        # Arrow raises OSError for an error of DuckDB in the middle of a result.
        if is_damaged(error):
            raise
        if too_large.is_set() or isinstance(error, MemoryError | duckdb.OutOfMemoryException):
            raise IllegalQuery(
                "the query took more memory than the node has for it and was stopped: narrow it, make smaller "
                "values, or run it on a snapshot file"
            ) from error
        if out_of_time.is_set():
            raise IllegalQuery(
                f"the query took longer than {timeout_seconds:g} seconds and was stopped: narrow it, attach "
                "over Quack, or run it on a snapshot file"
            ) from error
        reason = str(error)  # empty where the text was cut, with some versions of Python
        raise IllegalQuery(
            f"DuckDB refuses the query: {with_other_names(reason)}" if reason else _UNREADABLE
        ) from error
    finally:
        clock.cancel()
        cursor.close()  # rolls the transaction back


def _told(columns: Sequence[tuple[str, str]]) -> str:
    """The columns of an answer (name, type), each by its number, as several may have one name."""
    told = []
    for number, (name, kind) in enumerate(columns, 1):
        quoted = name.replace('"', '""')
        told.append(f'#{number}{"::VARCHAR" if _ONLY_AS_TEXT.search(kind) else ""} AS "{quoted}"')
    return ", ".join(told)


def _rows(reader: pa.RecordBatchReader, row_limit: int, byte_limit: int) -> pa.Table:
    batches = []
    count = size = 0
    for batch in reader:
        count += batch.num_rows
        size += batch.nbytes
        if count > row_limit:
            raise IllegalQuery(
                f"more than {row_limit} rows came back: add a LIMIT, or attach over Quack, which streams"
            )
        if size > byte_limit:
            raise IllegalQuery(
                f"more than {byte_limit} bytes came back: ask for fewer rows or columns, or attach over Quack, which "
                "streams"
            )
        batches.append(batch)
    return pa.Table.from_batches(batches, schema=reader.schema)
