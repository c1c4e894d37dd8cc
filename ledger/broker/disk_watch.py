"""Disk watch of the embedded broker: detects that it cannot write, and restarts the server when it can again.

Measured with nats-server 2.15.1: after one write that failed, it answers no publication to that stream any more, even
when there is space again, until it is restarted; what it had acknowledged is all there then. It reports this in its log
only, so the log is followed here. Where the disk is gone, read-only or has no byte left, its log is silent, too: then
the directory tells: by its rights, its free space, and a little that is written into it and removed every few
seconds. Rights and space alone do not: a disk that the kernel froze after an error (`emergency_ro`) answers both as if
nothing was wrong.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable

import structlog

from ledger.broker.server_config import ServerFiles
from ledger.runtime.no_room import FULL

log = structlog.get_logger(__name__)

ROOM_BYTES = 16 * 1024 * 1024
"""Free space that is needed before a restart."""
_LOOK_EVERY = 0.5
_WRITE_EVERY = 10  # looks: the file system of an idle node has to note each file that comes and goes
_LITTLE = bytes(4096)  # a block of its own, as what follows a full one needs
_SIGNS = (b"no space left on device", b"disk quota exceeded", b"Critical write error", b"failed to store a msg")


class BrokerDisk:
    """Watches one server's log and disk; `trouble` is the reason why it cannot write, None while it can."""

    def __init__(self, files: ServerFiles, start_again: Callable[[], None]) -> None:
        self._files, self._start_again = files, start_again
        self._read_to = self._size()
        self._looks = 0
        self.trouble: str | None = None
        self.cause = ""
        """The first part of the trouble: what cannot be written, and why."""

    async def watch(self) -> None:
        """Check log and disk until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            hindrance = await asyncio.to_thread(self._hindrance)
            if self.trouble is None and (hindrance is not None or self._failed_to_write()):
                why, until = hindrance or self._lacks_room() or ("a write failed", "a moment has passed")
                self.cause = f"the broker cannot write to {self._files.store}: {why}"
                self.trouble = (
                    f"{self.cause}. Nothing is kept until {until}; then the broker is started again by itself"
                )
                log.error("broker_cannot_write", directory=str(self._files.store), why=why, free_bytes=self._free())
            if self.trouble is not None and (hindrance or self._lacks_room()) is None:
                log.warning("broker_can_write", directory=str(self._files.store), free_bytes=self._free())
                self._start_again()
                await asyncio.sleep(_LOOK_EVERY)
                self._read_to, self.trouble = self._size(), None

    def _hindrance(self) -> tuple[str, str] | None:
        """Why nothing can be written now, and until when; None where that is not known."""
        self._looks += 1
        try:
            writable = os.access(self._files.store, os.W_OK | os.X_OK)  # false on a read-only disk for root, too
            if writable and self._free() < len(_LITTLE):
                return self._full()
            if writable and (self.trouble is not None or self._looks % _WRITE_EVERY == 0):
                self._write_a_little()
        except OSError as error:
            if error.errno in FULL:
                return self._full()
            writable = False
        return None if writable else ("it is gone or read-only", "it can be written again")

    def _write_a_little(self) -> None:
        """Raises OSError."""
        little = self._files.store / "written"
        try:
            with little.open("wb", buffering=0) as file:
                file.write(_LITTLE)
        finally:
            little.unlink(missing_ok=True)

    def _lacks_room(self) -> tuple[str, str] | None:
        """That the disk is full, and until when; None where there is room enough to start the server again."""
        return self._full() if self._free() < ROOM_BYTES else None

    def _full(self) -> tuple[str, str]:
        return "its disk is full", f"there are {ROOM_BYTES // 2**20} MiB free"

    def _failed_to_write(self) -> bool:
        fresh = self._fresh_lines()
        return any(sign in fresh for sign in _SIGNS)

    def _fresh_lines(self) -> bytes:
        try:
            if self._size() < self._read_to:  # the server has rotated its log
                self._read_to = 0
            with self._files.log.open("rb") as file:
                file.seek(self._read_to)
                fresh = file.read()
        except OSError:
            return b""
        self._read_to += len(fresh)
        return fresh

    def _size(self) -> int:
        try:
            return self._files.log.stat().st_size
        except OSError:
            return 0

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self._files.directory).free
        except OSError:
            return 0
