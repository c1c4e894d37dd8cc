"""Workbench: a connection to a view, with the temporary relations of one batch.

The relations are Arrow tables, read in place: the decoded events, the gate's verdicts, and what a fold computes.

Folds that need nothing of each other can go beside each other, in lanes: a lane is a connection with a thread of its
own. DuckDB writes with one thread in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from ledger.event import Fact
from ledger.privacy.keyring import Keyring
from projections.fold_kit.identities import Identities
from projections.fold_kit.parser import Parser

Facts = tuple[type[Fact], ...]
"""The facts that occur in a batch, in the vocabulary's order."""


def table_of(fact: type[Fact]) -> str:
    """The relation of one fact's accepted events (projections/engine/gate.py)."""
    return "accepted_" + fact.name.replace(".", "_")


class Workbench:
    """A connection to a view, with the relations of one batch. Used by one thread at a time.

    `keyring` opens sealed values; with an empty one, every sealed event is refused.
    """

    def __init__(self, con: duckdb.DuckDBPyConnection, keyring: Keyring | None = None) -> None:
        self.con = con
        self.keyring = keyring or Keyring()
        self._loaded: dict[str, pa.Table] = {}
        self._position: int | None = None
        self._lanes: dict[str, _Lane] | None = None
        self._torn = False  # what a lane did is committed, and the rest of the batch is not
        self.identities: Identities | None = None
        """The ids that the view has, where somebody keeps them in mind."""

    @cached_property
    def parser(self) -> Parser:
        """The parser of batches that were not decoded ahead."""
        return Parser()

    @cached_property
    def recall_days(self) -> int | None:
        """For how many days the file keeps the detail of recalls; None for all."""
        ((days,),) = self.rows("SELECT days FROM recall_retention")
        return None if days is None else int(days)

    def close(self) -> None:
        """Close the connection, and the parser with it."""
        if "parser" in self.__dict__:
            self.parser.close()
        for lane in (self._lanes or {}).values():
            lane.close()
        self.con.close()

    def open_lanes(self, names: Iterable[str]) -> None:
        """From now on, what `in_lane` is given goes on a connection of the lane's own.

        Several transactions are several commits: only for a file that is thrown away where anything fails, as a
        rebuild's.
        """
        ((catalog,),) = self.rows("SELECT current_database()")
        self._lanes = {name: _Lane(self.con.cursor(), catalog) for name in names}

    def position(self) -> int:
        """The view's checkpoint. Each fold begins with this call, which also ends a transaction that was left open.

        The bench is the only writer of its file, so after a fold that went well it knows. Raises RuntimeError where
        half of a batch is in the file.
        """
        if self._torn:
            raise RuntimeError("half of a batch is in this file: delete it and rebuild")
        if self._position is not None:
            return self._position
        query = "SELECT position FROM checkpoints WHERE name = 'views'"
        try:
            (row,) = self.rows(query)
        except duckdb.TransactionException:  # a failed one is still open: there was no memory to roll it back
            self.con.execute("ROLLBACK")
            (row,) = self.rows(query)
        return int(row[0])

    def at(self, position: int | None) -> None:
        """Note where a fold has left the view; None while one runs, and where it failed."""
        self._position = position
        if position is not None:
            self._torn = False

    @contextmanager
    def lanes_joined(self) -> Iterator[None]:
        """Around all that a transaction does: what the lanes did is there when the block ends, or none of it.

        The block is the last thing before the commit of the transaction.
        """
        lanes = list((self._lanes or {}).values())
        try:
            yield
            for lane in lanes:
                lane.wait()
            for lane in lanes:
                self._torn |= lane.commit()
        except BaseException:
            for lane in lanes:
                lane.roll_back()
            raise

    def in_lane(self, name: str, fold: Callable[[Workbench], None]) -> None:
        """Run a fold in a lane. Of what the batch changes it reads the batch's relations and what its lane has written.

        Where lanes are open, what it writes is not to be seen in this transaction, and its errors are raised at the end
        of `lanes_joined`. Otherwise it runs at once.
        """
        if self._lanes is None:
            fold(self)
        else:
            self._lanes[name].start(self._loaded, fold)

    def run(self, statement: str) -> None:
        """Execute a statement without parameters."""
        self.con.execute(statement)

    def rows(self, query: str) -> list[Any]:
        """All rows of a query without parameters."""
        return self.con.execute(query).fetchall()

    def table(self, query: str) -> pa.Table:
        """The same, as columns."""
        return self.con.execute(query).to_arrow_table()

    def present(self, tables: dict[str, pa.Table]) -> None:
        """Register these tables as relations until `clear`."""
        for name, table in tables.items():
            self.con.register(name, table)
            self._loaded[name] = table

    def presented(self, name: str) -> pa.Table:
        """A relation of this batch, as columns."""
        return self._loaded[name]

    def load(self, name: str, columns: Iterable[Any], schema: pa.Schema) -> str:
        """Register columns of Python values as a relation until `clear`; returns its name."""
        arrays = [
            column if isinstance(column, (pa.Array, pa.ChunkedArray)) else pa.array(column, field.type)
            for column, field in zip(columns, schema, strict=True)
        ]
        name = f"loaded_{name}"
        self.present({name: pa.table(arrays, schema=schema)})
        return name

    def clear(self) -> None:
        """Unregister the relations of this batch."""
        for name in self._loaded:
            self.con.unregister(name)
        self._loaded.clear()


class _Lane:
    """Another connection to a view file, with a thread and relations of its own."""

    def __init__(self, con: duckdb.DuckDBPyConnection, catalog: str) -> None:
        con.execute('USE "{}"'.format(catalog.replace('"', '""')))
        self._bench = Workbench(con)
        self._thread = ThreadPoolExecutor(1, "view-lane")
        self._running: Future[None] | None = None

    def start(self, relations: dict[str, pa.Table], fold: Callable[[Workbench], None]) -> None:
        """Begin a transaction with one fold in it. There is one fold in a transaction."""
        self._running = self._thread.submit(self._fold, dict(relations), fold)

    def wait(self) -> None:
        """Wait for the fold. Raises what it raises."""
        if self._running is not None:
            self._running.result()

    def commit(self) -> bool:
        """Commit what the fold did, after `wait`; False where none was begun."""
        if self._running is None:
            return False
        self._bench.run("COMMIT")
        self._running = None
        return True

    def roll_back(self) -> None:
        """Wait for the fold, and take back what it did."""
        if self._running is not None:
            self._running.exception()
            self._running = None
            with suppress(duckdb.Error):  # what failed has ended the transaction
                self._bench.run("ROLLBACK")

    def close(self) -> None:
        """End the thread, and close the connection."""
        self._thread.shutdown()
        self._bench.close()

    def _fold(self, relations: dict[str, pa.Table], fold: Callable[[Workbench], None]) -> None:
        self._bench.run("BEGIN TRANSACTION")
        self._bench.present(relations)
        try:
            fold(self._bench)
        finally:
            self._bench.clear()
