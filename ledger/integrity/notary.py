"""Notary: a loop that reads the log beside the folds, extends the hash chain, and signs checkpoints.

It polls the head instead of following the log, so an event on its way into the views never waits for it. Under load it
pauses between its reads.

It never signs anything that contradicts its own checkpoints: a log that ends before the last signed position, or in
which the last signed event is a different one, is not the log that was signed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TypeVar

import structlog

from kledger.contract.errors import ChainContradicted, LedgerError, LogGap, NotCertified, ServiceFailed
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.chain_start import note_signed
from ledger.integrity.checkpoint_hook import CheckpointHook
from ledger.integrity.checkpoints import SignedCheckpoint, append_checkpoints, sign
from ledger.integrity.notary_start import READ, NotaryFiles, chain_of, head_not_before, resume
from ledger.integrity.signing_keys import SigningKeys
from ledger.runtime.log_once import Outage
from ledger.stream import Ledger

log = structlog.get_logger(__name__)

T = TypeVar("T")

EVERY_EVENTS = 1_000
EVERY_SECONDS = 5.0
LOOK_SECONDS = 1.0
# When at least this many events came since the last poll, the notary pauses for this many times as long as it worked.
BUSY_EVENTS, REST_WHILE_BUSY = 500, 8.0
LAST_WORDS_SECONDS = 10.0
_ROUND_SECONDS = 1.0


class Notary:
    """Maintains the chain of one log, and signs it."""

    def __init__(
        self,
        ledger: Ledger,
        files: NotaryFiles,
        *,
        hook: CheckpointHook | None = None,
        every_events: int = EVERY_EVENTS,
        every_seconds: float = EVERY_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        """Creates a signing key where there is none. Raises UnsafeKeyFile."""
        self._ledger, self.files, self._hook = ledger, files, hook
        self._every_events, self._every_seconds, self._look_seconds = every_events, every_seconds, look_seconds
        files.directory.mkdir(parents=True, exist_ok=True)
        files.checkpoints.parent.mkdir(parents=True, exist_ok=True)
        self._keys = SigningKeys.open(files.keys)
        self._leaves = files.leaves
        self._chain: Chain | None = None
        self._last_leaf: bytes | None = None
        # One thread for hashing and files: the work of a cancelled round ends before the next round writes.
        self._worker = ThreadPoolExecutor(1, "notary")
        self._turn = asyncio.Lock()
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._urgent = 0  # callers that wait for a signature
        self._head = 0
        self._signed_at = time.monotonic()
        self.certified: SignedCheckpoint | None = None
        """The last checkpoint that was signed."""
        self._outage = Outage("the notary pauses", "the notary goes on", log)
        self.trouble: LedgerError | None = None
        """Why nothing is signed at present; None while all is well."""

    @property
    def position(self) -> int:
        """The end of the chain; events after the last checkpoint are not signed yet."""
        return self._chain.position if self._chain else 0

    def status(self) -> JsonObject:
        """How far the log is signed, with which key, and what prevents more."""
        return {
            "position": self.position,
            "certified": self.certified.to_json() if self.certified else None,
            "trouble": self.trouble.message if self.trouble else None,
            "hook": self._hook.trouble if self._hook else None,
        }

    async def run(self) -> None:
        """Extend and sign until cancelled. After a contradiction nothing is signed any more."""
        while True:
            try:
                async with self._turn:
                    more = await self._round()
                self.trouble = None
                self._outage.over(position=self.position)
            except (ChainContradicted, LogGap) as error:
                await self._stop_signing(error)
                return
            except (LedgerError, OSError) as error:
                more = False
                unwritable = ServiceFailed(f"the chain cannot be written: {error}")
                self.trouble = error if isinstance(error, LedgerError) else unwritable
                self._outage.met(self.trouble.message, position=self.position)
            if not more:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._look_seconds):
                        await self._wake.wait()
                self._wake.clear()

    async def certify(self, position: int, timeout: float = 30.0) -> SignedCheckpoint:
        """The last checkpoint, once it covers `position` (from 1 on); signs at once if it does not yet.

        Raises NotCertified.
        """
        self._urgent += 1
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout), self._moved:
                    self._wake.set()
                    await self._moved.wait_for(lambda: self._signed_to() >= position or self._is_stopped())
        finally:
            self._urgent -= 1
        if self.certified is None or self.certified.position < position:
            reason = f": {self.trouble.message}" if self.trouble else f" within {timeout:g} s"
            raise NotCertified(f"position {position} was not signed{reason}", position=position)
        return self.certified

    async def chain_at(self, position: int) -> Chain:
        """The chain of the first `position` events, from leaves that match the signed checkpoint.

        Raises NotCertified.
        """
        if not position:
            return Chain.empty()
        certified = await self.certify(position)
        async with self._turn:
            chain = await chain_of(self._leaves, position, self._worker)
            if not certified.fits(await chain_of(self._leaves, certified.position, self._worker, chain)):
                self._chain = None  # the next round begins anew
                self._wake.set()
                raise NotCertified(
                    f"the leaves in {self._leaves.path} are not those that were signed: they are made anew from the "
                    "log; try again in a moment",
                    position=position,
                )
        return chain

    async def close(self, hopeless: Callable[[], bool] = lambda: False) -> None:
        """Sign the latest events, as far as a short time allows; nothing where it is `hopeless` to wait for the log."""
        if not self._is_stopped() and not hopeless():
            self._urgent += 1
            with contextlib.suppress(LedgerError, OSError, TimeoutError):
                async with asyncio.timeout(LAST_WORDS_SECONDS), self._turn:
                    while await self._round():
                        continue
        if self._hook is not None:
            await self._hook.close()
        self._worker.shutdown(wait=True)

    def _signed_to(self) -> int:
        return self.certified.position if self.certified else 0

    def _is_stopped(self) -> bool:
        return isinstance(self.trouble, ChainContradicted | LogGap)

    async def _stop_signing(self, error: LedgerError) -> None:
        self.trouble = error
        log.error("nothing is signed any more", error=error.message, position=self.position)
        async with self._moved:
            self._moved.notify_all()

    async def _round(self) -> bool:
        """Extend the chain for about a second and sign if due; True when there is more to read already.

        Raises ChainContradicted, LogGap, BrokerUnavailable, UnsafeKeyFile, OSError.
        """
        if self._chain is not None and not self._leaves.holds(self.position):
            log.warning("the leaves are not there any more", file=str(self._leaves.path), position=self.position)
            self._chain = None
        if self._chain is None:
            self._chain, self.certified = await resume(self._ledger, self.files, self._worker)
            last = self._leaves.read(self.position, self.position) if self.position else []
            self._last_leaf = last[0] if last else None
            async with self._moved:  # who has asked before waits for no further signature
                self._moved.notify_all()
        head = await head_not_before(self._ledger, self.position)
        busy, self._head = head - self._head >= BUSY_EVENTS and not self._urgent, head
        unsigned = head - self._signed_to()
        overdue = time.monotonic() - self._signed_at >= self._every_seconds
        if not unsigned or not (unsigned >= self._every_events or overdue or self._urgent):
            return False
        if head > self.position:
            await self._read(busy)
        if self.position < head:
            return True
        await self._sign()
        return False

    async def _read(self, busy: bool) -> None:
        """Extend the chain with events of the log, for about a second."""
        began, until = time.monotonic(), time.monotonic() + _ROUND_SECONDS
        # The chain's last event is read again, to check that it is the same.
        async with contextlib.aclosing(self._ledger.read(max(1, self.position), batch=READ)) as lists:
            async for events in lists:
                await self._extend(events)
                now = time.monotonic()
                if busy:
                    await asyncio.sleep((now - began) * REST_WHILE_BUSY)
                if now > until:
                    break
                began = time.monotonic()

    async def _extend(self, events: list[StoredEvent]) -> None:
        """Hash a list of events, write their leaves, and sign if enough events are unsigned."""
        assert self._chain is not None  # set by _round
        leaves = await self._in_thread(lambda: leaf_hashes(events))
        if events[0].position == self.position:
            if leaves[0] != self._last_leaf:
                raise ChainContradicted(
                    f"the event at position {self.position} is not the one that stood there: the log was changed, "
                    "or is another one; run kledger audit",
                    position=self.position,
                )
            leaves = leaves[1:]
        if not leaves:
            return
        chain, after = self._chain, self.position
        await self._in_thread(lambda: self._leaves.append(leaves, after))
        self._chain = await self._in_thread(lambda: chain.extended(leaves))
        self._last_leaf = leaves[-1]
        if self.position - self._signed_to() >= self._every_events:
            await self._sign()

    async def _sign(self) -> None:
        """Sign the chain, unless its end is signed already."""
        assert self._chain is not None  # set by _round
        if self.position == self._signed_to():
            return
        checkpoint = sign(self._chain, self._keys, datetime.now(UTC))
        await self._in_thread(lambda: append_checkpoints(self.files.checkpoints, [checkpoint]))
        if self.certified is None:
            await self._in_thread(lambda: note_signed(self.files))
        self._signed_at, self.certified = time.monotonic(), checkpoint
        if self._hook is not None:
            self._hook.send([checkpoint])
        async with self._moved:
            self._moved.notify_all()

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)
