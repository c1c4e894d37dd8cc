"""Workbench: a connection to a view, with the temporary relations of one batch.

The relations are Arrow tables, read in place: the decoded events, the gate's verdicts, and what a fold computes.

Folds that need nothing of each other can go beside each other, in lanes: a lane is a connection with a thread of its
own. DuckDB writes with one thread in one transaction.

A lane has one transaction for many batches, and is at its own pace: the gate judges a batch while the lanes write the
one before. DuckDB then writes whole row groups into the file as they fill, in the lane, and copies no row in a commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from ledger.event import Fact
from ledger.privacy.keyring import Keyring
from projections.fold_kit.identities import Identities
from projections.fold_kit.parser import Parser
from projections.fold_kit.sql_text import rows_with

T = TypeVar("T")
Facts = tuple[type[Fact], ...]
"""The facts that occur in a batch, in the vocabulary's order."""


def table_of(fact: type[Fact]) -> str:
    """The relation of one fact's accepted events (projections/engine/gate.py)."""
    return "accepted_" + fact.name.replace(".", "_")


class Workbench:
    """A connection to a view, with the relations of one batch. Used by one thread at a time.

    `keyring` opens sealed values; with an empty one, every sealed event is refused.
    """

    _uncommitted = False
    """Whether it may join with rows that are committed after many batches alone."""

    def __init__(self, con: duckdb.DuckDBPyConnection, keyring: Keyring | None = None) -> None:
        self.con = con
        self.keyring = keyring or Keyring()
        self._loaded: dict[str, pa.Table] = {}
        self._position: int | None = None
        self._lanes: dict[str, _Lane] | None = None
        self._torn = False  # a lane has some of a batch, and the rest was taken back
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

    @property
    def torn(self) -> bool:
        """Whether half of a batch is in the file, for good."""
        return self._torn or any(lane.failed for lane in (self._lanes or {}).values())

    @property
    def has_lanes(self) -> bool:
        """Whether lanes are open."""
        return self._lanes is not None

    def open_lanes(self, names: Iterable[str]) -> None:
        """From now on, what `in_lane` is given goes on a connection of the lane's own, and is committed by `settle`.

        What a batch did is then not there as a whole or not at all: only for a file that is thrown away where anything
        fails, as a rebuild's.
        """
        ((catalog,),) = self.rows("SELECT current_database()")
        lanes: dict[str, _Lane] = {}
        for name in names:
            lanes[name] = _Lane(self.con.cursor(), catalog, dict(lanes))
        self._lanes = lanes

    def close_lanes(self) -> None:
        """Settle, and do without lanes from now on. Raises what `settle` raises."""
        self.settle()
        for lane in (self._lanes or {}).values():
            lane.close()
        self._lanes = None

    def settle(self) -> None:
        """Commit what the lanes did. Raises what their folds raised; then the file is of no use."""
        for ending in [lane.settle() for lane in (self._lanes or {}).values()]:
            ending.result()

    def position(self) -> int:
        """The view's checkpoint. Each fold begins with this call, which also ends a transaction that was left open.

        The bench is the only writer of its file, so after a fold that went well it knows. Raises RuntimeError where
        half of a batch is in the file, and what a lane's fold raised.
        """
        for lane in (self._lanes or {}).values():
            lane.raise_if_lost()
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

    def in_lane(self, name: str, fold: Callable[[Workbench], None]) -> None:
        """Run a fold in a lane, after those that it was given before. Of what batches change, it reads the relations of
        this one and what its lane has written, and what `rows_of_lane` reads for it in a lane that was opened before.

        Where lanes are open, it goes on beside this bench, until the lane is needed next. Its errors are raised then.
        """
        if self._lanes is None:
            fold(self)
        else:
            self._torn = True  # until the batch is done
            self._lanes[name].start(self._loaded, fold)

    def rows_of_lane(self, name: str, query: str, **relations: pa.Table) -> list[Any]:
        """All rows of a query over what a lane has written of the batches so far, and over these relations."""
        return self._rows_in(self._lanes, name, query, relations)

    def run_later(self, statement: str, relations: dict[str, pa.Table]) -> None:
        """Run a statement over these relations. A lane runs it in `settle`, over the relations of all batches together:
        in its transaction, DuckDB takes ten times as long to update what that has written. They are kept till then, so
        they may be no part of a batch's own columns.
        """
        self.present(relations)
        self.run(statement)

    def _rows_in(
        self, lanes: dict[str, _Lane] | None, name: str, query: str, relations: dict[str, pa.Table]
    ) -> list[Any]:
        if lanes is not None:
            return lanes[name].rows(query, relations)
        self.present(relations)
        return self.rows(query)

    def few_of(self, table: str, column: str, values: str) -> str:
        """A relation to join with in the place of a table: at least the rows that have one of the values of a query.

        In a lane only those, as its rows are not committed yet.
        """
        return rows_with(table, column, values) if self._uncommitted else table

    def run(self, statement: str) -> None:
        """Execute a statement without parameters."""
        self._execute(statement)

    def rows(self, query: str) -> list[Any]:
        """All rows of a query without parameters."""
        return self._execute(query).fetchall()

    def table(self, query: str) -> pa.Table:
        """The same, as columns."""
        return self._execute(query).to_arrow_table()

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        return self.con.execute(statement)

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


_AHEAD = 2
"""Folds that a lane may be behind: those of one batch. Each keeps the relations of its batch in memory."""
_EXECUTE = compile("con.execute(statement)", __name__, "eval")


class _LaneBench(Workbench):
    """The bench of a lane. It reads in the lanes before it, and gathers what is to be run later."""

    _uncommitted = True

    def __init__(self, con: duckdb.DuckDBPyConnection, before: dict[str, _Lane]) -> None:
        super().__init__(con)
        self._before = before
        self._later: dict[str, dict[str, list[pa.Table]]] = {}

    def rows_of_lane(self, name: str, query: str, **relations: pa.Table) -> list[Any]:
        return self._rows_in(self._before, name, query, relations)

    def run_later(self, statement: str, relations: dict[str, pa.Table]) -> None:
        gathered = self._later.setdefault(statement, {})
        for name, table in relations.items():
            gathered.setdefault(name, []).append(table)

    def present(self, tables: dict[str, pa.Table]) -> None:
        """Have these tables as relations until `clear`, as variables that DuckDB finds where a statement is executed.

        A table that is registered stays in memory until the transaction ends, and here that ends after many batches.
        """
        self._loaded.update(tables)

    def clear(self) -> None:
        self._loaded.clear()

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        variables = {**self._loaded, "con": self.con, "statement": statement}
        executed: duckdb.DuckDBPyConnection = eval(_EXECUTE, variables)  # a frame with these variables
        return executed

    def run_gathered(self) -> None:
        """Run what was to be run later."""
        for statement, relations in self._later.items():
            self.present({name: pa.concat_tables(tables) for name, tables in relations.items()})
            self.run(statement)
        self.clear()
        self._later.clear()


class _Lane:
    """Another connection to a view file, with a thread and relations of its own, and a transaction that goes on."""

    def __init__(self, con: duckdb.DuckDBPyConnection, catalog: str, before: dict[str, _Lane]) -> None:
        con.execute('USE "{}"'.format(catalog.replace('"', '""')))
        self._bench = _LaneBench(con, before)
        self._thread = ThreadPoolExecutor(1, "view-lane")
        self._under_way: deque[Future[None]] = deque()
        self._begun = False
        self._lost: BaseException | None = None

    @property
    def failed(self) -> bool:
        """Whether its transaction is lost."""
        return self._lost is not None

    def start(self, relations: dict[str, pa.Table], fold: Callable[[Workbench], None]) -> None:
        """Begin with a fold after those before, of which no more than _AHEAD may wait. Raises what they raised."""
        while len(self._under_way) >= _AHEAD:
            self._under_way.popleft().result()
        self._under_way.append(self._thread.submit(self._work, self._fold, dict(relations), fold))

    def rows(self, query: str, relations: dict[str, pa.Table]) -> list[Any]:
        """The rows of a query, once the fold has ended. Raises what that raised."""
        return self._thread.submit(self._work, self._rows, query, relations).result()

    def settle(self) -> Future[None]:
        """Begin to commit what the folds did. The result raises what the last one raised."""
        return self._thread.submit(self._work, self._settle)

    def close(self) -> None:
        """End the thread, and close the connection: what is not committed is taken back."""
        self._thread.shutdown()
        self._bench.close()

    def raise_if_lost(self) -> None:
        """Raise what ended its transaction, if anything did."""
        if self._lost is not None:
            raise self._lost

    def _work(self, work: Callable[..., T], *given: Any) -> T:
        self.raise_if_lost()
        try:
            return work(*given)
        except BaseException as error:
            self._lost = error
            raise

    def _fold(self, relations: dict[str, pa.Table], fold: Callable[[Workbench], None]) -> None:
        if not self._begun:
            self._bench.run("BEGIN TRANSACTION")
            self._begun = True
        self._bench.present(relations)
        fold(self._bench)
        self._bench.clear()

    def _rows(self, query: str, relations: dict[str, pa.Table]) -> list[Any]:
        self._bench.present(relations)
        rows = self._bench.rows(query)
        self._bench.clear()
        return rows

    def _settle(self) -> None:
        if self._begun:
            self._bench.run("COMMIT")
            self._begun = False
            self._bench.run("BEGIN TRANSACTION")
            self._bench.run_gathered()
            self._bench.run("COMMIT")
