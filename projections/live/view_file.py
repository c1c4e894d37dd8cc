"""The live view's file: opening it, serving it to analysts over Quack, and replacing it."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import duckdb
import structlog

from kledger.contract.errors import NodeMisconfigured, ServiceFailed
from ledger.privacy.keyring import Keyring
from ledger.runtime.damaged_file import damaged_mark
from projections.analysts import quack
from projections.analysts.quack_sessions import Admits
from projections.engine.duckdb import open_view, schema_version_of
from projections.engine.schema_version import SCHEMA_VERSION
from projections.engine.threads.own_threads import left_behind
from projections.engine.view import Instance, View
from projections.live import more_memory
from projections.live.files import (
    copy_closed,
    discard,
    discard_others,
    discard_spilled,
    has_served,
    live_file,
    next_file,
    point_to,
)

log = structlog.get_logger(__name__)

_CLOSES_WITHIN_SECONDS = 2.0
_STOPS_WITHIN_SECONDS = 1.0
_TRIES_FOR_THE_PORT = 20
MEMORY = 1_000_000_000
"""Bytes that DuckDB may take for the live view, as long as its texts are not too large for that."""
_MOST_MEMORY = 4_000_000_000
"""Bytes that it may take at most: what the view may, analysts over Quack may as well."""


class IncompatibleView(duckdb.InvalidInputException):
    """A view file of another version or setting, as after an upgrade: nothing is wrong with it, and it is of no use."""


class LiveFiles:
    """The view files of one node, in `directory`, and the Quack server over the live one."""

    def __init__(
        self,
        directory: Path,
        quack_port: int | None,
        admits: Admits | None = None,
        keyring: Keyring | None = None,
        recall_days: int | None = None,
    ) -> None:
        self.directory = directory
        self.recall_days = recall_days
        """For how many days the files keep the detail of recalls; None for all."""
        self._keyring = keyring
        self.address: quack.QuackAddress | None = None
        self._quack_port = quack_port
        self._admits = admits
        self._memory = MEMORY

    def open_live(self, *, expected: bool = True) -> Instance:
        """Open the live file, or a new one when there is none that this version can use.

        A file that is damaged, of another schema version or of another retention is discarded: the views are folded
        again from the log. So they are where the file that was served is not found, which is logged where one is
        `expected`.
        """
        path = live_file(self.directory)
        if path is not None:
            discard_spilled(path)
            try:
                if damaged_mark(path).exists():
                    raise duckdb.IOException("a block of it could not be read")
                instance = self.open(path)
            except IncompatibleView as error:
                log.warning("the views are made anew from the log", why=str(error))
                discard(path)
            except duckdb.Error as error:
                log.error("the view file is unusable and is made anew from the log", file=str(path), error=str(error))
                discard(path)
            else:
                discard_others(self.directory, path)
                return instance
        elif expected and has_served(self.directory):
            log.warning("the views are made anew from the log", why="the file that was served is gone, or not named")
        path = next_file(self.directory)
        instance = self.open(path)
        point_to(path)
        discard_others(self.directory, path)
        return instance

    def open(self, path: Path) -> Instance:
        """Open a view file, locked down to folding and reading. Raises duckdb.Error."""
        con = open_view(path, self.recall_days, unsigned_extensions=quack.are_checked())
        version = schema_version_of(con)
        if version != SCHEMA_VERSION:
            con.close()
            if not version:
                raise duckdb.InvalidInputException("it does not say how far it goes")
            raise IncompatibleView(f"another version of the program made them: {version}, this one is {SCHEMA_VERSION}")
        try:  # opening reads no data: read the last event to check that the file is readable
            con.execute("FROM events WHERE position = (SELECT max(position) FROM checkpoints)").fetchall()
        except duckdb.Error:
            con.close()
            raise
        instance = Instance(con, path, self._keyring)
        if instance.bench.recall_days != self.recall_days:
            kept = instance.bench.recall_days
            con.close()
            raise IncompatibleView(
                f"they keep the detail of recalls for {kept or 'all'} days, this node for {self.recall_days or 'all'}"
            )
        more_memory.limit_to(con, self._memory)
        quack.prepare(con, self._admits)
        return instance

    def open_rebuilt(self, path: Path) -> Instance:
        """Open a view file that a process of its own has just folded.

        Raises NodeMisconfigured, and discards the file, where that process ran another version of the program.
        """
        try:
            return self.open(path)
        except IncompatibleView as error:
            discard(path)
            raise NodeMisconfigured(
                "the program is another version than the one that this node runs: it was changed since the node "
                "started, as by git pull or pip install: stop it and start it again"
            ) from error

    def give_memory(self) -> bool:
        """Let the live view have more memory from when it is opened again; False where it has all that it may."""
        if (more := more_memory.more_than(self._memory, _MOST_MEMORY)) is None:
            return False
        self._memory = more
        log.warning("the view has larger texts than fit, and may take more memory", bytes=more)
        return True

    def serve(self, instance: Instance) -> None:
        """Serve a view to analysts, at the same address and token as before."""
        if self._quack_port is None:
            return
        before = self.address
        self.address = quack.serve(
            instance.con,
            port=before.port if before else self._quack_port,
            token=before.token if before else None,
        )

    def stop_serving(self, instance: Instance, seconds: float = quack.STOPS_WITHIN_SECONDS) -> None:
        """Stop the Quack server and free its port; a query that runs is waited for so long."""
        if self.address is None:
            return
        try:
            ended = quack.stop(instance.con, self.address, seconds)
        except duckdb.FatalException:  # the server ends with its invalidated file
            return
        if not ended:
            log.warning("a query over Quack has not ended and is not waited for", port=self.address.port)

    async def reopen(self, view: View) -> None:
        """Serve a copy of the live file, with all that was committed. Raises duckdb.Error, OSError.

        For a view whose fold lacks memory, and for one that DuckDB has invalidated, as it does where it can neither
        commit nor roll back (an analyst's statement had used up all memory). DuckDB refuses every statement then until
        the file is opened again, and one process cannot do that while running statements still have it open; hence the
        copy.
        """
        old = view.instance
        if old.path is None:
            return
        path = next_file(self.directory)
        try:
            await asyncio.to_thread(copy_closed, old.path, path)
            fresh = await asyncio.to_thread(self.open, path)
        except (duckdb.Error, OSError):
            discard(path)
            raise
        # Its sessions would read on what no longer moves. Who saves waits for the view meanwhile.
        await asyncio.to_thread(self.stop_serving, old, _STOPS_WITHIN_SECONDS)
        point_to(path)
        closed = asyncio.Event()
        await view.swap(fresh, then=closed.set)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(closed.wait(), _CLOSES_WITHIN_SECONDS)
        discard(old.path)
        await self._serve_beside(fresh)
        log.warning("the view's file was given up and is opened again", position=fresh.position)

    async def _serve_beside(self, fresh: Instance) -> None:
        """Serve analysts from `fresh`. An invalidated file keeps the port while a session is attached to it."""
        if (before := self.address) is None:
            return
        for _ in range(_TRIES_FOR_THE_PORT):
            try:
                self.serve(fresh)
            except (NodeMisconfigured, ServiceFailed):  # the port is taken, or was just before
                await asyncio.sleep(_CLOSES_WITHIN_SECONDS / _TRIES_FOR_THE_PORT)
            else:
                return
        left_behind("a server for analysts")
        self.address = quack.serve(fresh.con, token=before.token)
        log.error("analysts are served at another port until the node starts anew", port=self.address.port)

    async def swap(self, view: View, fresh: Instance) -> None:
        """Replace the live file by `fresh`; running queries end on the old one, which is then removed."""
        old = view.instance
        await asyncio.to_thread(self.stop_serving, old)  # a running query blocks this for some seconds
        await view.swap(fresh, then=lambda: discard(old.path) if old.path else None)
        self.serve(fresh)
