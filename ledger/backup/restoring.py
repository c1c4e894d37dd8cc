"""Restore: recreates a stream with the same chain from a backup, in an empty stream, and compares every event.

The stream is read back right behind what is published. A broker of the restore's own syncs to its disk afterwards, any
other one with each batch. The stream's metadata has `ledger_restoring` from its creation until everything was read back
and synced, so that no node reads a partly restored stream, and an interrupted restore recognises its own. Where
there were no words of sessions as it began, the metadata says so as well: the next one removes what this one brought.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

import structlog

from kledger.contract.errors import BrokerUnavailable, RestoreRefused
from ledger.backup.as_log import events_in_order
from ledger.backup.checking import found_intact
from ledger.backup.keys import kept_keys, refuse_other_vault, restore_keys
from ledger.backup.manifest import Manifest
from ledger.backup.put_back import put_back
from ledger.backup.refill.comparing import Done, Lists, closed, compared, hand_over
from ledger.backup.refill.reading_ahead import ahead
from ledger.backup.refill.sending import Republication, Sender, republications
from ledger.backup.refill.streaming import NotTaken, Streamer
from ledger.backup.sessions import has_sessions, restore_sessions
from ledger.broker.access import LEDGER_STREAM, SESSION_SUBJECTS, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM
from ledger.broker.restored import MARKS, RESTORED_FROM, RESTORED_TO, RESTORING, WORDS_OF_RESTORE
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import DUPLICATE_WINDOW, check_settings, created, created_anew, stream_config
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.signing_keys import VerifyingKey
from ledger.progress import Progress, silent
from ledger.sessions.jetstream import JetStreamSessions
from ledger.wire.publication import error_code, error_of

log = structlog.get_logger(__name__)

_LISTS_TO_COMPARE = 4  # each of up to 2,000 events; the publishing waits where more are not compared yet
_CHANGE_TIMEOUT = 30.0
# The shortest that the broker takes. It reads what was stored within it as it starts, to tell retries: nobody retries
# while nobody but the restore writes.
_SHORT_WINDOW_NS = 100_000_000


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
    server: EmbeddedServer | None = None,
    goes_on: bool = True,
) -> Restored:
    """Restore a backup into an empty stream, which is created if it does not exist; connects as `admin`.

    `server` is that of `access`, where it runs for this restore alone: events are streamed to it, and it is started
    anew where it did not sync them (`EmbeddedServer.synced`); its `access` is another one then.

    With `key`, the backup must be signed with it, and its decoded columns are believed. `manifest` is that of a backup
    that was just verified; without it the backup is verified first. `data` is the directory of the node that will use
    the stream: the files become its archive (ledger/backup/put_back.py). `settings` are those of the stream that was
    there before. One that came to its end, and was cut before all beside its stream was done, `goes_on` with that, once
    the events are compared; not where a node has begun. `start_over` removes what an interrupted restore left.
    `progress` counts the events that are published and those that are compared. Raises BackupDamaged, BackupMismatch
    (before anything is published), RestoreRefused, PayloadTooLarge, BrokerUnavailable (run it again: it resumes),
    BrokerMisconfigured.
    """
    started = time.monotonic()
    if manifest is None:
        manifest = await found_intact(directory, key=key)
    connection = await BrokerConnection.open(access, "admin", name="kledger-restore")
    try:
        await refuse_other_vault(connection, directory)
        reached, ended = await _open(connection, stream, manifest, settings, start_over, goes_on, server is not None)
        done = Done(manifest.position, reached, started, progress)
        at, whole = reached, False
        if server is not None and not ended:
            try:
                await _fill(access, directory, manifest, Streamer(connection, stream, at), stream, done)
                whole = True
            except (NotTaken, BrokerUnavailable) as why:
                log.info("the broker is asked about each batch from here on", why=str(why))
            await closed(connection)
            access = await server.synced()
            connection = await BrokerConnection.open(access, "admin", name="kledger-restore")
            at = await _last_of(connection, stream)
        if ended:
            await _compared_again(access, directory, manifest, Sender(connection, stream, at), stream, done)
        elif not whole or at < manifest.position:  # it was not all taken, or the server was killed as it stopped
            done = Done(manifest.position, at, started, progress)
            await _fill(access, directory, manifest, Sender(connection, stream, at), stream, done)
        if ended:  # they came back before, and what was removed since stays so
            keys, words = len(kept_keys(directory)), 0
        else:
            keys = await restore_keys(access, connection, directory)
            words = await restore_sessions(access, connection, directory, manifest.position)
            await _finish(connection, stream, manifest)
    finally:
        await connection.close()
    segments = await asyncio.to_thread(put_back, directory, manifest, data, key=key) if data is not None else 0
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


async def _fill(
    access: BrokerAccess, directory: Path, manifest: Manifest, sender: Sender | Streamer, stream: str, done: Done
) -> None:
    """Publish what the stream does not have yet, and compare all of it. Raises as restore does, and NotTaken."""
    read: Lists = asyncio.Queue(_LISTS_TO_COMPARE)
    ends = sender.until_not_taken if isinstance(sender, Streamer) else None
    async with compared(access, stream, manifest.position, read, done, ends) as comparing, sender:
        lists = ahead(events_in_order(directory, manifest.segments), _republished)
        async with contextlib.aclosing(lists):
            async for events, republished in lists:
                if read.full():  # what was read before may wait for what is under way
                    await sender.settle()
                await hand_over(read, events, comparing)
                await sender.send(republished)
                done.sent_to(sender.position)
                if comparing.done():  # it failed
                    break
            else:
                await sender.settle()
                done.sent_to(sender.position)
                await hand_over(read, [], comparing)
        await comparing


async def _compared_again(
    access: BrokerAccess, directory: Path, manifest: Manifest, sender: Sender, stream: str, done: Done
) -> None:
    """Compare all of a stream that was restored before. Raises RestoreRefused as where it is not known as that."""
    try:
        await _fill(access, directory, manifest, sender, stream, done)
    except RestoreRefused as error:
        raise RestoreRefused(
            f"a restore into the stream {stream} has come to its end before, and an event is another one there now: "
            "mend it with kledger repair"
        ) from error


async def _last_of(connection: BrokerConnection, stream: str) -> int:
    """The last position of the stream."""
    info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info):
        raise error_of(info, f"a look at the stream {stream}")
    return int(info["state"]["last_seq"])


async def _open(
    connection: BrokerConnection,
    stream: str,
    manifest: Manifest,
    settings: JsonObject | None,
    start_over: bool,
    goes_on: bool,
    alone: bool,
) -> tuple[int, bool]:
    """Create or find the stream; returns the position that an earlier try had reached, and whether it ended there.

    Where the restore is `alone` on the broker, a new one tells retries for a moment only, until `_finish`.
    """
    mark = _mark(manifest)
    info = await connection.api(f"STREAM.INFO.{stream}")
    if not error_code(info) and start_over:
        _refuse_other_than_unfinished(info, stream)
        await _remove_words(connection, info)  # first: the mark goes with the stream
        await _request(connection, f"STREAM.DELETE.{stream}", None, f"to remove the unfinished stream {stream}")
        info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info) == NO_STREAM:
        config = _with_metadata(settings or stream_config(stream), await _marks(connection, mark))
        if alone:
            config[DUPLICATE_WINDOW] = _SHORT_WINDOW_NS
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
        return 0, False
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
        await _remove_words(connection, info)
        return last, False
    if goes_on and last and last == manifest.position and (config.get("metadata") or {}).get(RESTORED_FROM) == mark:
        return last, True
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
    await _update(connection, stream, config, await _marks(connection, mark))
    return 0, False


def _mark(manifest: Manifest) -> str:
    """What tells a backup from others."""
    return f"{manifest.position}:{manifest.chain.head.hex()}"


async def _marks(connection: BrokerConnection, mark: str) -> dict[str, str]:
    """The metadata of a restore that begins."""
    own_words = {} if await has_sessions(connection) else {WORDS_OF_RESTORE: "all"}
    return {RESTORING: mark, **own_words}


async def _remove_words(connection: BrokerConnection, info: JsonObject) -> None:
    """Remove the words of sessions which the interrupted restore of this stream brought, where all of them are its."""
    if WORDS_OF_RESTORE in (info["config"].get("metadata") or {}) and await has_sessions(connection):
        await JetStreamSessions(connection).purge(SESSION_SUBJECTS)


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


async def _finish(connection: BrokerConnection, stream: str, manifest: Manifest) -> None:
    info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info):
        raise error_of(info, f"a look at the stream {stream}")
    if (last := int(info["state"]["last_seq"])) != manifest.position:
        raise RestoreRefused(
            f"the stream {stream} ends at position {last} and the backup at {manifest.position}: somebody else wrote "
            "there. Start over with --start-over, while nothing writes"
        )
    ended = {RESTORED_TO: str(manifest.position), RESTORED_FROM: _mark(manifest)}
    window = max(info["config"][DUPLICATE_WINDOW], stream_config(stream)[DUPLICATE_WINDOW])
    await _update(connection, stream, {**info["config"], DUPLICATE_WINDOW: window}, ended)


async def _update(connection: BrokerConnection, stream: str, config: JsonObject, metadata: dict[str, str]) -> None:
    changed = _with_metadata(config, metadata)
    await _request(connection, f"STREAM.UPDATE.{stream}", changed, f"to mark the stream {stream}")


def _with_metadata(config: JsonObject, metadata: dict[str, str]) -> JsonObject:
    """The settings with this metadata instead of our earlier marks."""
    others = {name: value for name, value in (config.get("metadata") or {}).items() if not name.startswith("_nats.")}
    others = {name: value for name, value in others.items() if name not in MARKS}
    return {**config, "metadata": {**others, **metadata}}


async def _request(connection: BrokerConnection, subject: str, document: JsonObject | None, what: str) -> None:
    answer = await connection.api(subject, document, timeout=_CHANGE_TIMEOUT)
    if error_code(answer):
        raise error_of(answer, what)
