"""Archiving of a node: a loop that follows the notary, and has what is signed written to the archive.

The archive saves time and holds no truth of its own. So nothing waits for it, it is written in a process of its own
with a low priority, and a disk that is nearly full is left to the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import structlog

from kledger.contract.errors import InvalidPayload, LedgerError, ServiceFailed
from ledger.archive.known import directories_in, keep_known, known_directories, missed, of_segment
from ledger.archive.segments import ARCHIVE, EVENTS, SEGMENT_EVENTS, gaps, segment_of, segments_in, set_aside
from ledger.broker.access import BrokerAccess
from ledger.event import JsonObject
from ledger.integrity.notary import Notary
from ledger.runtime.log_once import Outage
from projections.archive.process import write_in_own_process
from projections.archive.reading import Archive
from projections.archive.writing import is_due

log = structlog.get_logger(__name__)

VARIABLE = "KLEDGER_ARCHIVE_EVENTS"
LOOK_SECONDS = 5.0
ROOM_BYTES = 256 * 1024 * 1024
"""Free space below which nothing is archived."""
_LONGEST_PAUSE = 60.0
_MOST_NAMED = 20


def segment_events_from_environment() -> int:
    """Events in a segment of this node's archive; 0: it keeps none. Raises InvalidPayload."""
    value = os.environ.get(VARIABLE, "").strip() or str(SEGMENT_EVENTS)
    if not value.isdecimal() or int(value) > SEGMENT_EVENTS:
        raise InvalidPayload(
            f"{VARIABLE}={value[:40]} is no setting: write a number of events up to {SEGMENT_EVENTS}, or 0",
            errors=[{"field": VARIABLE, "reason": f"is not a number from 0 to {SEGMENT_EVENTS}"}],
        )
    return int(value)


class Archiving:
    """Keeps the archive of one node, which alone writes it."""

    def __init__(self, access: BrokerAccess, data: Path, notary: Notary, size: int, master: bytes) -> None:
        self._access, self._data, self._notary, self._size, self._master = access, data, notary, size, master
        self._wake = asyncio.Event()
        self._outage = Outage("archiving pauses", "archiving goes on", log)
        self._named: list[JsonObject] = []
        self._known, self._kept = frozenset[str](), frozenset[str]()  # directories; the latter are on the disk
        self._turn = asyncio.Lock()  # of whoever changes what is known, and what is there
        self._unsure = True  # whether all segments have their columns
        self._there: JsonObject = {"position": 0, "segments": 0, "bytes": 0}
        self.trouble: str | None = None
        """Why nothing is archived at present; None while all is well."""
        self.missing: list[str] = []
        """What was removed from the archive, and is not made anew yet."""

    @property
    def kept(self) -> bool:
        """Whether this node has an archive."""
        return bool(self._size)

    def open(self) -> Archive | None:
        """The archive as it is now, to read from; None for a node without one."""
        return Archive.of_node(self._data) if self._size else None

    async def run(self) -> None:
        """Archive what is signed, until cancelled."""
        pause = LOOK_SECONDS
        self._there = await asyncio.to_thread(_measured, self._data / ARCHIVE)
        self._known = self._kept = await asyncio.to_thread(known_directories, self._notary.files)
        while True:
            try:
                await self._write()
                self.trouble, pause = None, LOOK_SECONDS
                self._outage.over()
            except (LedgerError, OSError) as error:
                self.trouble = error.message if isinstance(error, LedgerError) else str(error)
                self._outage.met(self.trouble)
                pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()

    async def leave_out(self, damaged: Sequence[JsonObject]) -> None:
        """Take segments that a reader did not believe out of the archive, so that they are made anew."""
        for each in damaged:
            log.warning("a segment of the archive is made anew", file=each["file"], why=each["reason"])
            async with self._turn:
                self._known -= of_segment(each["segment"], each["file"])
                await asyncio.to_thread(set_aside, self._data / ARCHIVE, segment_of(each["segment"]), each["file"])
        if damaged:
            await self._name(damaged)
            self._wake.set()

    def status(self) -> JsonObject:
        """How far the log is archived, what that takes on the disk, what was left out, and why there is not more."""
        return {**self._there, "damaged": list(self._named), "trouble": self.trouble}

    async def _write(self) -> None:
        """Write what is due, and what somebody removed. Raises ServiceFailed, BrokerUnavailable, LogGap, OSError."""
        if not self._size:
            return
        await self._miss()
        certified = self._notary.certified
        if certified is None:
            return
        unsure, self._unsure = self._unsure, False
        try:
            if await asyncio.to_thread(is_due, self._data, certified.position, self._size, columns=unsure):
                await self._write_to(certified.position)
        except BaseException:
            self._unsure = True
            raise
        await self._remember()

    async def _miss(self) -> None:
        """Name what was in the archive and is not there any more."""
        async with self._turn:
            there = await asyncio.to_thread(directories_in, self._data / ARCHIVE)
            gone = self._known - there
            for name in gone:
                part, _, segment = name.partition("/")
                self._known -= of_segment(segment, f"{part}/")
        if named := list(missed(gone, there)):
            for each in named:
                log.warning("what was archived is gone, and is made anew", file=each["file"], why=each["reason"])
                self.missing.append(each["file"])
            await self._name(named)

    async def _remember(self) -> None:
        """Keep what is in the archive, once it has all that it should."""
        self.missing = []
        async with self._turn:
            there = await asyncio.to_thread(directories_in, self._data / ARCHIVE)
            self._known |= there  # what was removed meanwhile is missed the next time
            if self._known != self._kept:
                await asyncio.to_thread(keep_known, self._notary.files, self._known)
                self._kept = self._known

    async def _name(self, damaged: Sequence[JsonObject]) -> None:
        """Tell of damage in the status."""
        self._named = [*self._named, *damaged][-_MOST_NAMED:]
        self._there = await asyncio.to_thread(_measured, self._data / ARCHIVE)
        self._unsure = True

    async def _write_to(self, position: int) -> None:
        if shutil.disk_usage(self._data).free < ROOM_BYTES:
            raise ServiceFailed(
                f"nothing is archived while the disk of {self._data} has less than {ROOM_BYTES // 2**20} MiB free"
            )
        written = await write_in_own_process(self._access, self._data, position, self._size, master=self._master)
        self._there = await asyncio.to_thread(_measured, self._data / ARCHIVE)
        if written.damaged:  # the writer set it aside, and said so in the log
            for each in written.damaged:
                self._known -= of_segment(each["segment"], each["file"])
            await self._name(written.damaged)
        log.info("archived", segments=written.segments, columns=written.columns, position=position)


def _measured(archive: Path) -> JsonObject:
    """The last position before a gap, the number of segments, and the bytes of all files."""
    segments = segments_in(archive / EVENTS)
    end = segments[-1].last if segments else 0
    gap = next(gaps(segments, 1, end), None)
    size = 0
    for folder, _, files in os.walk(archive):
        for file in files:
            with contextlib.suppress(OSError):  # gone meanwhile
                size += Path(folder, file).stat().st_size
    return {"position": end if gap is None else gap.first - 1, "segments": len(segments), "bytes": size}
