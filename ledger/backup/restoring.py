"""Restore: recreates a stream with the same chain from a backup, in an empty stream, and compares every event.

The stream is read back right behind what is published, as the broker has it on its disk by then. Its metadata has
`ledger_restoring` from its creation until everything was read back, so that no node reads a partly restored stream, and
an interrupted restore recognises its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kledger.contract.errors import RestoreRefused
from ledger.backup.as_log import events_in_order
from ledger.backup.checking import found_intact
from ledger.backup.keys import restore_keys
from ledger.backup.manifest import Manifest
from ledger.backup.put_back import put_back
from ledger.backup.reading_ahead import ahead
from ledger.backup.sending import Republication, Sender, republications
from ledger.backup.sessions import restore_sessions
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM
from ledger.broker.restored import RESTORED_TO, RESTORING
from ledger.broker.stream_setup import check_settings, created, created_anew, stream_config
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.signing_keys import VerifyingKey
from ledger.progress import Progress, silent
from ledger.store.reader import read_stream
from ledger.wire.publication import error_code, error_of

_READ_EVENTS = 1_000
_LISTS_TO_COMPARE = 4  # each of up to 2,000 events; the publishing waits where more are not compared yet
_CHANGE_TIMEOUT = 30.0

Lists = asyncio.Queue[list[StoredEvent]]
"""Events of the backup that are published, or were there, and not compared yet; after the last an empty list."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore; every event that was read back equals the backup's, so the stream's chain is that one.

    `continued_from` is the position that an interrupted restore had reached, `signed` the signed checkpoint that
    matches the events, None where the backup has none.
    """

    position: int
    head: str
    root: str
    continued_from: int
    signed: JsonObject | None
    keys: int
    """The number of restored records of the vault; the master key that they need is in no backup."""
    session_records: int
    """The number of restored records of sessions: messages, and what else is kept with them."""
    archived: int
    """The number of the backup's files that are segments of the new node's archive."""
    seconds: float


async def restore(
    access: BrokerAccess,
    directory: Path,
    progress: Progress = silent,
    *,
    key: VerifyingKey | None = None,
    stream: str = LEDGER_STREAM,
    settings: JsonObject | None = None,
    start_over: bool = False,
    manifest: Manifest | None = None,
    data: Path | None = None,
) -> Restored:
    """Restore a backup into an empty stream, which is created if it does not exist; connects as `admin`.

    With `key`, the backup must be signed with it. `manifest` is that of a backup that was just verified; without it the
    backup is verified first. `data` is the directory of the node that will use the stream: the files become its archive
    (ledger/backup/put_back.py). `settings` are those of the stream that was there before. `start_over` removes what an
    interrupted restore left. `progress` counts the events that are published and those that are compared. Raises
    BackupDamaged, BackupMismatch (before anything is published), RestoreRefused, PayloadTooLarge, BrokerUnavailable
    (run it again: it resumes), BrokerMisconfigured.
    """
    started = time.monotonic()
    if manifest is None:
        manifest = await found_intact(directory, key=key)
    connection = await BrokerConnection.open(access, "admin", name="kledger-restore")
    try:
        reached = await _open(connection, stream, manifest, settings, start_over)
        done = _Done(manifest.position, reached, started, progress)
        read: Lists = asyncio.Queue(_LISTS_TO_COMPARE)
        async with (
            _compared(access, stream, manifest.position, read, done) as comparing,
            Sender(connection, stream, reached) as sender,
        ):
            lists = ahead(events_in_order(directory, manifest.segments), _republished)
            async with contextlib.aclosing(lists):
                async for events, republished in lists:
                    if read.full():  # what was read before may wait for what is under way
                        await sender.settle()
                    await _hand_over(read, events, comparing)
                    await sender.send(republished)
                    done.sent_to(sender.position)
                    if comparing.done():  # it failed
                        break
                else:
                    await sender.settle()
                    done.sent_to(sender.position)
                    await _hand_over(read, [], comparing)
            await comparing
        keys = await restore_keys(access, connection, directory)
        words = await restore_sessions(access, connection, directory, manifest.position)
        await _finish(connection, stream, manifest)
    finally:
        await connection.close()
    segments = await asyncio.to_thread(put_back, directory, manifest, data) if data is not None else 0
    return Restored(
        manifest.position,
        manifest.chain.head.hex(),
        manifest.chain.root().hex(),
        reached,
        manifest.signed.to_json() if manifest.signed else None,
        keys,
        words,
        segments,
        round(time.monotonic() - started, 3),
    )


async def _open(
    connection: BrokerConnection, stream: str, manifest: Manifest, settings: JsonObject | None, start_over: bool
) -> int:
    """Create or find the stream; returns the position that an earlier try had reached."""
    mark = f"{manifest.position}:{manifest.chain.head.hex()}"
    info = await connection.api(f"STREAM.INFO.{stream}")
    if not error_code(info) and start_over:
        _refuse_other_than_unfinished(info, stream)
        await _request(connection, f"STREAM.DELETE.{stream}", None, f"to remove the unfinished stream {stream}")
        info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info) == NO_STREAM:
        config = _with_metadata(settings or stream_config(stream), {RESTORING: mark})
        create = created_anew if start_over or settings else created
        answer = await create(connection, config)
        if error_code(answer):
            raise error_of(answer, f"to create the stream {stream}")
        if held := int(answer["state"]["last_seq"]):
            raise RestoreRefused(
                f"the broker takes up {held:,} events of an earlier stream {stream}, which was removed: bring the "
                "backup back with --start-over, which removes them",
                position=held,
            )
        return 0
    if error_code(info):
        raise error_of(info, f"a look at the stream {stream}")
    config, state = info["config"], info["state"]
    unfinished = (config.get("metadata") or {}).get(RESTORING)
    last = int(state["last_seq"])
    if unfinished is not None:
        if unfinished != mark:
            raise RestoreRefused(
                f"the stream {stream} is half restored from another backup: give that one, which after kledger repair "
                "is the new one that it wrote (…-repaired-…), or start over with --start-over, which removes what is "
                "there"
            )
        return last
    if last and (restored := (config.get("metadata") or {}).get(RESTORED_TO)):
        raise RestoreRefused(
            f"a restore into the stream {stream} has come to its end before, at position {restored}: start the node on "
            "it, which makes what is missing beside the log. Choose a new data directory or another broker to bring a "
            "backup back once more, or mend the events of this stream with kledger repair",
            position=last,
        )
    if last:
        raise RestoreRefused(
            f"the stream {stream} is not empty, it has {int(state['messages']):,} events up to position {last}: a "
            "backup is brought back into an empty one. Choose a new data directory or another broker, or mend the "
            "events of this stream with kledger repair",
            position=last,
        )
    if state.get("consumer_count") and await _is_read(connection, stream):
        raise RestoreRefused(
            f"something reads the stream {stream}: stop every node on it (one that was killed is forgotten after a "
            "minute), and run this again"
        )
    check_settings(config)
    await _update(connection, stream, config, {RESTORING: mark})
    return 0


async def _is_read(connection: BrokerConnection, stream: str) -> bool:
    """Whether a node reads the stream now. Durable consumers do not count: those of reactors outlive their node."""
    answer = await connection.api(f"CONSUMER.LIST.{stream}")
    if error_code(answer):
        raise error_of(answer, f"a look at who reads the stream {stream}")
    return any(not consumer["config"].get("durable_name") for consumer in answer.get("consumers") or ())


def _refuse_other_than_unfinished(info: JsonObject, stream: str) -> None:
    if RESTORING not in (info["config"].get("metadata") or {}):
        raise RestoreRefused(f"the stream {stream} is not an unfinished restore: nothing is removed")


def _republished(events: list[StoredEvent]) -> tuple[list[StoredEvent], list[Republication]]:
    return events, republications(events)


async def _hand_over(read: Lists, events: list[StoredEvent], comparing: asyncio.Future[None]) -> None:
    """Have these events compared, once those before are; not where comparing has failed."""
    if read.full():
        putting = asyncio.ensure_future(read.put(events))
        await asyncio.wait((putting, comparing), return_when=asyncio.FIRST_COMPLETED)
        putting.cancel()
    else:
        read.put_nowait(events)


class _Done:
    """Counts what was published and what was compared, and tells both as one number."""

    def __init__(self, position: int, reached: int, started: float, progress: Progress) -> None:
        self._reached, self._total = reached, 2 * position - reached
        self._started, self._progress = started, progress
        self._sent, self._compared = reached, 0

    def sent_to(self, position: int) -> None:
        self._sent = position
        self._tell()

    def compared_to(self, position: int) -> None:
        self._compared = position
        self._tell()

    def _tell(self) -> None:
        done = self._sent - self._reached + self._compared
        self._progress(done, self._total, done / max(time.monotonic() - self._started, 1e-9))


@asynccontextmanager
async def _compared(
    access: BrokerAccess, stream: str, last: int, read: Lists, done: _Done
) -> AsyncIterator[asyncio.Task[None]]:
    """A task that reads the stream back right behind the publishing, on a connection of its own; see _read_back."""
    connection = await BrokerConnection.open(access, "admin", name="kledger-compare")
    task = asyncio.ensure_future(_read_back(connection, stream, last, read, done))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.close()


async def _read_back(connection: BrokerConnection, stream: str, last: int, read: Lists, done: _Done) -> None:
    """Read the stream up to position `last`, and compare each event with what was read in the backup.

    All that a leaf is made of is compared, and the position: so the stream's chain is the backup's. Raises
    RestoreRefused.
    """
    position, kept, at = 0, list[StoredEvent](), 0
    reading = read_stream(connection, stream, 1, follow=True, batch=_READ_EVENTS, restored=lambda _config: last)
    async with contextlib.aclosing(reading) as batches:
        while position < last:
            events = await anext(batches)
            while len(kept) - at < len(events) and (following := await read.get()):
                kept, at = kept[at:] + following, 0
            backed_up = kept[at : at + len(events)]
            if events != backed_up:
                pairs = itertools.zip_longest(events, backed_up)
                other = next(each for each, (there, here) in enumerate(pairs) if there != here)
                raise RestoreRefused(
                    f"position {events[other].position} of the stream {stream} does not hold the backup's event: "
                    "somebody else wrote there. Start over with --start-over, while nothing writes"
                )
            at += len(events)
            position = events[-1].position
            done.compared_to(position)


async def _finish(connection: BrokerConnection, stream: str, manifest: Manifest) -> None:
    info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info):
        raise error_of(info, f"a look at the stream {stream}")
    if (last := int(info["state"]["last_seq"])) != manifest.position:
        raise RestoreRefused(
            f"the stream {stream} ends at position {last} and the backup at {manifest.position}: somebody else wrote "
            "there. Start over with --start-over, while nothing writes"
        )
    await _update(connection, stream, info["config"], {RESTORED_TO: str(manifest.position)})


async def _update(connection: BrokerConnection, stream: str, config: JsonObject, metadata: dict[str, str]) -> None:
    changed = _with_metadata(config, metadata)
    await _request(connection, f"STREAM.UPDATE.{stream}", changed, f"to mark the stream {stream}")


def _with_metadata(config: JsonObject, metadata: dict[str, str]) -> JsonObject:
    """The settings with this metadata instead of our earlier marks."""
    others = {name: value for name, value in (config.get("metadata") or {}).items() if not name.startswith("_nats.")}
    others = {name: value for name, value in others.items() if name not in (RESTORING, RESTORED_TO)}
    return {**config, "metadata": {**others, **metadata}}


async def _request(connection: BrokerConnection, subject: str, document: JsonObject | None, what: str) -> None:
    answer = await connection.api(subject, document, timeout=_CHANGE_TIMEOUT)
    if error_code(answer):
        raise error_of(answer, what)
