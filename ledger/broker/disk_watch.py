"""Disk watch of the embedded broker: detects a full disk and restarts the server when there is space again.

Measured with nats-server 2.15.1: after one write that failed for lack of space, it answers no publication to that
stream any more, even when there is space again, until it is restarted; what it had acknowledged is all there then. It
reports this in its log only, so the log is followed here.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable

import structlog

from ledger.broker.server_config import ServerFiles

log = structlog.get_logger(__name__)

ROOM_BYTES = 16 * 1024 * 1024
"""Free space that is needed before a restart."""
_LOOK_EVERY = 0.5
_SIGNS = (b"no space left on device", b"disk quota exceeded", b"Critical write error")


class BrokerDisk:
    """Watches one server's log and disk; `trouble` is the reason why it cannot write, None while it can."""

    def __init__(self, files: ServerFiles, start_again: Callable[[], None]) -> None:
        self._files, self._start_again = files, start_again
        self._read_to = self._size()
        self.trouble: str | None = None

    async def watch(self) -> None:
        """Check log and disk until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self.trouble is None and self._failed_to_write():
                self.trouble = (
                    f"the broker cannot write to {self._files.store}: its disk is full. Nothing is kept until there "
                    f"are {ROOM_BYTES // 2**20} MiB free; then the broker is started again by itself"
                )
                log.error("broker_disk_full", directory=str(self._files.store), free_bytes=self._free())
            if self.trouble is not None and self._free() >= ROOM_BYTES:
                log.warning("broker_disk_has_room", directory=str(self._files.store), free_bytes=self._free())
                self._start_again()
                await asyncio.sleep(_LOOK_EVERY)
                self._read_to, self.trouble = self._size(), None

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
