"""Folding in parts: a new view file that nobody reads yet is folded by two threads, in a transaction each.

Views that only append what the batch says are folded beside those that build on earlier rows; what reads the tables of
both comes after them. So a batch is not one transaction, and a fold that fails leaves a file that is of no use: whoever
folds in parts throws it away then (projections/live/rebuild.py). The views are the same, as each fold reads what it
reads otherwise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import duckdb

from projections.engine.duckdb import transaction
from projections.engine.registry import VIEWS, Turn
from projections.fold_kit.workbench import Facts, Workbench


class Torn(Exception):
    """A fold in parts failed, for the reason that is its cause."""


class Beside:
    """A second connection to a new view file, and the thread that folds on it."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._bench = Workbench(con)
        self._thread = ThreadPoolExecutor(1, "view-writer-beside")

    @contextmanager
    def folding(self, bench: Workbench, facts: Facts) -> Iterator[None]:
        """Fold the views of this turn while the block runs; both have ended when it is left."""
        self._bench.present(bench.relations())
        done: Future[None] = self._thread.submit(self._fold, facts)
        try:
            yield
        finally:
            done.exception()  # it may still read what the block has made
        done.result()

    def _fold(self, facts: Facts) -> None:
        with transaction(self._bench.con):
            fold_turn(self._bench, facts, "beside")
        self._bench.clear()

    def close(self) -> None:
        self._thread.shutdown()
        self._bench.close()


def fold_turn(bench: Workbench, facts: Facts, turn: Turn) -> None:
    """Fold the views of one turn."""
    for view in VIEWS:
        if view.fold is not None and view.turn == turn:
            view.fold(bench, facts)


@contextmanager
def in_parts(bench: Workbench) -> Iterator[None]:
    """Fold large batches in parts; the bench is that of a file made by open_new_view."""
    con = bench.con.cursor()
    con.execute("USE view")
    with contextlib.closing(Beside(con)) as beside:
        bench.beside = beside
        try:
            yield
        finally:
            bench.beside = None
