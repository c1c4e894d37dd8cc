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

from kledger.contract.errors import LogReplaced, RestoreRefused
from ledger.archive.event_file import BackupEvent
from ledger.backup.checking import found_intact, read_backup
from ledger.backup.keys import restore_keys
from ledger.backup.manifest import Manifest
from ledger.backup.put_back import put_back
from ledger.backup.reading_ahead import LeavesInOrder, ahead
from ledger.backup.sending import Republication, Sender, republications
from ledger.backup.sessions import restore_sessions
from ledger.backup.writing import Progress, silent
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.restored import RESTORED_TO, RESTORING
from ledger.broker.stream_setup import check_settings, created, created_anew, stream_config
from ledger.event import JsonObject
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.signing_keys import VerifyingKey
from ledger.store.reader import read_stream
from ledger.wire.publication import error_code, error_of

_NO_STREAM = 10059
_READ_EVENTS = 1_000
_CHANGE_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Restored:
    """The result of a restore; the stream's chain, computed from the events read back, equals the backup's.

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
        async with (
            _compared(access, stream, directory, manifest, done) as comparing,
            Sender(connection, stream, reached) as sender,
        ):
            batches = ahead(read_backup(directory, reached + 1), _republished)
            async with contextlib.aclosing(batches):
                async for batch in batches:
                    await sender.send(batch)
                    done.sent_to(sender.position)
                    if comparing.done():  # it failed
                        break
                else:
                    await sender.settle()
                    done.sent_to(sender.position)
            chain = await comparing
        keys = await restore_keys(access, connection, directory)
        words = await restore_sessions(access, connection, directory, manifest.position)
        await _finish(connection, stream, manifest)
    finally:
        await connection.close()
    segments = await asyncio.to_thread(put_back, directory, manifest, data) if data is not None else 0
    return Restored(
        chain.position,
        chain.head.hex(),
        chain.root().hex(),
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
    if error_code(info) == _NO_STREAM:
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
                f"the stream {stream} is half restored from another backup: give that one, or start over with "
                "--start-over, which removes what is there"
            )
        return last
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


def _republished(kept: list[BackupEvent]) -> list[Republication]:
    return republications([one.event for one in kept])


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
    access: BrokerAccess, stream: str, directory: Path, manifest: Manifest, done: _Done
) -> AsyncIterator[asyncio.Task[Chain]]:
    """A task that reads the stream back right behind the publishing, on a connection of its own; see _read_back."""
    connection = await BrokerConnection.open(access, "admin", name="kledger-compare")
    task = asyncio.ensure_future(_read_back(connection, stream, directory, manifest, done))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.close()


async def _read_back(
    connection: BrokerConnection, stream: str, directory: Path, manifest: Manifest, done: _Done
) -> Chain:
    """Read the stream to the backup's end, compare each event with it, and return the chain of what was read.

    Raises RestoreRefused, LogReplaced.
    """
    chain, kept = Chain.empty(), LeavesInOrder(directory, manifest)
    reading = read_stream(
        connection, stream, 1, follow=True, batch=_READ_EVENTS, restored=lambda _config: manifest.position
    )
    async with contextlib.aclosing(reading) as batches:
        while chain.position < manifest.position:
            events = await anext(batches)
            leaves = leaf_hashes(events)
            backed_up = await asyncio.to_thread(kept.next, len(leaves))
            if backed_up != leaves:
                pairs = itertools.zip_longest(leaves, backed_up)
                other = next(at for at, (there, here) in enumerate(pairs) if there != here)
                raise RestoreRefused(
                    f"position {events[other].position} of the stream {stream} does not hold the backup's event: "
                    "somebody else wrote there. Start over with --start-over, while nothing writes"
                )
            chain = chain.extended(leaves)
            done.compared_to(chain.position)
    if chain != manifest.chain:
        raise LogReplaced(
            f"the stream {stream} has at position {chain.position} the chain {chain.head.hex()}, the backup "
            f"{manifest.chain.head.hex()}: run kledger restore-backup again with --start-over"
        )
    return chain


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
