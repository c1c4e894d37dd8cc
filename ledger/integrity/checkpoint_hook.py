"""Checkpoint hook: passes new checkpoints to a command of the operator on its standard input, to store them elsewhere.

It is started without a shell, one at a time, and never blocks the notary. Each run gets a JSON line for every
checkpoint since the last successful run (at-least-once), so a receiver that was away misses nothing as long as the
node runs.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import deque

import orjson
import structlog

from kledger.contract.errors import InvalidPayload
from ledger.integrity.checkpoints import SignedCheckpoint
from ledger.runtime.log_once import Outage
from ledger.runtime.private import child_environment

log = structlog.get_logger(__name__)

TIMEOUT = 30.0
MOST_WAITING = 10_000  # older ones are only in the file
_MAX_ERROR = 500


class CheckpointHook:
    """Sends checkpoints by `command`."""

    def __init__(self, command: str, *, timeout: float = TIMEOUT) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InvalidPayload(f"the checkpoint hook {command!r} cannot be read: {error}", errors=[]) from error
        if not self._words:
            raise InvalidPayload("the checkpoint hook names no command", errors=[])
        self._timeout = timeout
        self._waiting: deque[SignedCheckpoint] = deque(maxlen=MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self._outage = Outage("checkpoints are not sent", "checkpoints are sent again", log)
        self.trouble: str | None = None
        """Why the last run failed; None after a successful one."""

    def send(self, checkpoints: list[SignedCheckpoint]) -> None:
        """Queue checkpoints and send them in the background."""
        self._waiting.extend(checkpoints)
        if checkpoints and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(), name="checkpoint-hook")

    async def close(self) -> None:
        """Wait for the run under way, no longer than it may take."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self._timeout)

    async def _run(self) -> None:
        while self._waiting:
            sent = list(self._waiting)
            self.trouble = await self._deliver(b"".join(orjson.dumps(one.to_json()) + b"\n" for one in sent))
            if self.trouble is not None:
                self._outage.met(self.trouble, position=sent[-1].position)
                return
            self._outage.over(position=sent[-1].position)
            delivered = set(sent)
            self._waiting = deque((one for one in self._waiting if one not in delivered), MOST_WAITING)

    async def _deliver(self, lines: bytes) -> str | None:
        """Run the command once; returns the reason if it failed."""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=child_environment(),
            )
        except OSError as error:
            return f"{self._words[0]} cannot be started: {error.strerror}"
        try:
            async with asyncio.timeout(self._timeout):
                _, errors = await process.communicate(lines)
        except TimeoutError:
            return f"it did not end within {self._timeout:g} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            return f"it ended with code {process.returncode}: {errors.decode('utf-8', 'replace')[-_MAX_ERROR:].strip()}"
        return None
