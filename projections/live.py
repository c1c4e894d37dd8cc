"""How is the live view's file opened, served to analysts, and replaced?"""

from __future__ import annotations

import asyncio
from pathlib import Path

import duckdb
import structlog

from ledger.keyring import Keyring
from projections import quack
from projections.duckdb import SCHEMA_VERSION, open_view, schema_version_of
from projections.files import discard, discard_others, live_file, next_file, point_to
from projections.quack_sessions import Admits
from projections.view import Instance, View

log = structlog.get_logger(__name__)


class LiveFiles:
    """The view files of one node, in `directory`, and the Quack server over the live one."""

    def __init__(
        self,
        directory: Path,
        quack_port: int | None,
        admits: Admits | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self.directory = directory
        self._keyring = keyring
        self.address: quack.QuackAddress | None = None
        self._quack_port = quack_port
        self._admits = admits

    def open_live(self) -> Instance:
        """Open the live file, or a new one when there is none that this version can use.

        The views follow from the log: a file that is damaged or of another schema is set aside and folded anew.
        """
        path = live_file(self.directory)
        if path is not None:
            try:
                instance = self.open(path)
            except duckdb.Error as error:
                log.error("the view file is unusable and is made anew from the log", file=str(path), error=str(error))
                discard(path)
            else:
                discard_others(self.directory, path)
                return instance
        path = next_file(self.directory)
        instance = self.open(path)
        point_to(path)
        discard_others(self.directory, path)
        return instance

    def open(self, path: Path) -> Instance:
        """Open a view file closed to everything but folding and reading. Raises duckdb.Error."""
        con = open_view(path)
        found = schema_version_of(con)
        if found != SCHEMA_VERSION:
            con.close()
            raise duckdb.InvalidInputException(f"its schema is version {found}, this program's is {SCHEMA_VERSION}")
        try:  # opening reads no data: the last event is read to see that it can be
            con.execute("FROM events WHERE position = (SELECT max(position) FROM checkpoints)").fetchall()
        except duckdb.Error:
            con.close()
            raise
        quack.prepare(con, self._admits)
        return Instance(con, path, self._keyring)

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

    def stop_serving(self, instance: Instance) -> None:
        """Let go of the analysts' port."""
        if self.address is not None and not quack.stop(instance.con, self.address):
            log.warning("a query over Quack has not ended and is not waited for", port=self.address.port)

    async def swap(self, view: View, fresh: Instance) -> None:
        """Put `fresh` in the place of the live file; questions under way end on the old one, which is removed."""
        old = view.instance
        await asyncio.to_thread(self.stop_serving, old)  # a query that goes on holds this up for some seconds
        await view.swap(fresh, then=lambda: discard(old.path) if old.path else None)
        self.serve(fresh)
