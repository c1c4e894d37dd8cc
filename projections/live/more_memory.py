"""More memory for DuckDB where a view has texts so large that a step of it does not fit.

DuckDB reads and writes a column in vectors of 2,048 values, and holds every text of one at once: with texts of up to
1 MiB that is 2 GB, and no smaller part of it can be asked for. So the limit, which is low since most views need
little, is raised for a view that needs more, as far as the machine goes.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

import duckdb
import structlog

from ledger.runtime.no_room import no_room
from projections.engine.digest import RelationDigest, digests
from projections.engine.duckdb import open_view
from projections.engine.view import Instance
from projections.live.files import copy_closed, discard, unnamed_file

log = structlog.get_logger(__name__)

_FACTOR = 4
_UNITS = {"bytes": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_SAID = ("Out of Memory Error", "failed to pin block", "could not allocate block")
"""What DuckDB says of it in an error of another kind: of a commit, or of a checkpoint."""

T = TypeVar("T")


def lacks_memory(error: BaseException) -> bool:
    """Whether DuckDB had too little memory, and not too little room on the disk for what it spills."""
    if not isinstance(error, duckdb.Error) or no_room(error) is not None:
        return False
    return isinstance(error, duckdb.OutOfMemoryException) or any(words in str(error) for words in _SAID)


def more_than(limit: int, most: int | None = None) -> int | None:
    """The next limit in bytes; None where `most`, or what the machine has, is reached."""
    highest = _of_the_machine() if most is None else min(most, _of_the_machine())
    return min(limit * _FACTOR, highest) if limit < highest else None


def limit_to(con: duckdb.DuckDBPyConnection, limit: int) -> None:
    """Let the database of `con` take so many bytes."""
    con.execute(f"SET memory_limit = '{limit} bytes'")


def limit_of(con: duckdb.DuckDBPyConnection) -> int:
    """How many bytes the database of `con` may take: it tells one digit, so the middle of that."""
    row = con.execute("SELECT current_setting('memory_limit')").fetchone()
    assert row is not None  # a SELECT without FROM has a row
    number, unit = row[0].split()
    return int((float(number) + 0.05) * _UNITS[unit])


async def made_with_memory(make: Callable[[int], Awaitable[T]], limit: int) -> T:
    """What `make(limit)` makes; made anew with a higher limit where that is too little. Raises what `make` raises."""
    while True:
        try:
            return await make(limit)
        except duckdb.Error as error:
            if not lacks_memory(error) or (more := more_than(limit)) is None:
                raise
            log.warning("a view has larger texts than fit: it is made anew with more memory", bytes=more)
            limit = more


def read_with_memory(con: duckdb.DuckDBPyConnection, read: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
    """What `read(con)` reads, with a higher limit for its time where it lacks memory. Raises what `read` raises."""
    before = limit = limit_of(con)
    try:
        while True:
            try:
                return read(con)
            except duckdb.OutOfMemoryException as error:
                if not lacks_memory(error) or (more := more_than(limit)) is None:
                    raise
                limit = more
                limit_to(con, limit)
    finally:
        if limit != before:
            limit_to(con, before)


def digests_of(instance: Instance) -> dict[str, RelationDigest]:
    """The digests of a view to which nobody writes meanwhile; where they do not fit, of a copy that may take more.

    The settings of the view itself are locked.
    """
    try:
        return digests(instance.con.cursor())
    except duckdb.OutOfMemoryException:
        if instance.path is None:
            raise
    copy = unnamed_file(instance.path.parent)
    try:
        copy_closed(instance.path, copy)
        with contextlib.closing(open_view(copy)) as con:
            return read_with_memory(con, digests)
    finally:
        discard(copy)


@functools.cache
def _of_the_machine() -> int:
    """As much as DuckDB takes where nobody limits it: most of what the machine, or its container, has."""
    with duckdb.connect(":memory:", config={"temp_directory": ""}) as con:
        return limit_of(con)
