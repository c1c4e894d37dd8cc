"""Stream repair: brings back events that a stream lost or changed, from a backup.

The stream and the backup are compared, the merged log is written as a new backup and verified, and only then is the
stream recreated from it. After the end of the backup the stream is the only source: when events are missing or
changed there, nothing is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kledger.contract.errors import BackupMismatch, NotRepairable
from ledger.backup.beside import keep_beside
from ledger.backup.checking import intact, read_backup
from ledger.backup.fetching import columns_here
from ledger.backup.keys import BroughtBack, bring_back_keys
from ledger.backup.manifest import Manifest, save, writing_to
from ledger.backup.place import Directory
from ledger.backup.restoring import Restored, restore
from ledger.backup.witnesses import SignedLog, Witness
from ledger.backup.writing import BackupWriter
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject
from ledger.integrity.chain import leaf_hashes
from ledger.progress import Progress, silent
from ledger.runtime.whole_file import check_directory_place
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.store.gap_tolerant_read import Missing, read_what_is_there
from ledger.store.jetstream import JetStreamLedger
from ledger.stream import Ledger
from ledger.wire.publication import error_code, error_of

_READ_EVENTS = 1_000
_DELETE_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Damage:
    """The differences between a stream and its backup; ranges of positions, both ends included."""

    head: int
    missing: list[tuple[int, int]] = field(default_factory=list)
    changed: list[tuple[int, int]] = field(default_factory=list)
    beyond: list[tuple[int, int]] = field(default_factory=list)
    """Missing or changed after the end of the backup, so not recoverable."""
    same: int = 0
    """The number of events that are the same in both."""

    @property
    def is_none(self) -> bool:
        return not (self.missing or self.changed or self.beyond)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair: the ranges taken from the backup, the new backup, and the restore from it.

    `restored` is None when there was nothing to repair in the stream. `keys` is what came back into the vault.
    """

    missing: list[tuple[int, int]]
    changed: list[tuple[int, int]]
    kept_in: str | None
    restored: Restored | None
    keys: BroughtBack = field(default_factory=BroughtBack)


async def find_damage(
    ledger: Ledger, directory: Path, *, damaged: Collection[int] = (), progress: Progress = silent
) -> Damage:
    """Compare a stream with a backup, event by event. `damaged` are positions known to be changed.

    Raises BackupMismatch when the backup is of another stream, BackupDamaged, BrokerUnavailable.
    """
    head = (await ledger.head()).position
    missing, changed, beyond = _Ranges(), _Ranges(), _Ranges()
    backup = itertools.chain.from_iterable(read_backup(directory))
    same = 0
    async with contextlib.aclosing(read_what_is_there(ledger, batch=_READ_EVENTS)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Missing):
                for position in range(piece.first, piece.last + 1):
                    (missing if next(backup, None) else beyond).add(position)
                progress(piece.last, head, 0.0)
                continue
            for event, leaf in zip(piece, leaf_hashes(piece), strict=True):
                backed_up = next(backup, None)
                if backed_up is None:
                    if event.position in damaged:
                        beyond.add(event.position)
                elif backed_up.leaf != leaf:
                    changed.add(event.position)
                else:
                    same += 1
            progress(piece[-1].position, head, 0.0)
    for backed_up in backup:  # the stream ends before the backup
        missing.add(backed_up.event.position)
    if changed.count > same:
        raise BackupMismatch(
            f"the backup in {directory} is not one of this stream: {changed.count:,} of the {changed.count + same:,} "
            "events that both have are other ones"
        )
    return Damage(head, missing.ranges, changed.ranges, beyond.ranges, same)


async def repair(
    access: BrokerAccess,
    directory: Path,
    into: Path,
    *,
    damaged: Collection[int] = (),
    signed: SignedLog | None = None,
    progress: Progress = silent,
    on_step: Callable[[str], None] = lambda _step: None,
    stream: str = LEDGER_STREAM,
) -> Repaired:
    """Restore the stream's lost events from the backup in `directory`; the whole log is first written to `into`.

    No node may run on the stream. `damaged` are positions that an audit found changed; `signed` are the node's
    checkpoints. `on_step` is called with a description of each step. Raises NotRepairable (with `positions`),
    BackupDamaged, BackupMismatch, InvalidPayload (`into` is not usable), RestoreRefused, BrokerUnavailable. The stream
    is not changed before the new backup is complete and verified. After an interruption later than that,
    `kledger restore-backup` from `into` completes the repair.
    """
    check_directory_place(into)
    on_step("reading the backup")
    manifest = await asyncio.to_thread(intact, directory)
    ledger = await JetStreamLedger.connect(access, role="admin", stream=stream, name="kledger-repair")
    try:
        witness = signed.latest() if signed else None
        on_step("comparing the stream with the backup")
        damage = await find_damage(ledger, directory, damaged=damaged, progress=progress)
        _refuse_unrecoverable(manifest, damage, witness)
        on_step("comparing the vault with the backup")
        keys = await bring_back_keys(access, directory)
        if damage.is_none:
            return Repaired([], [], None, None, keys)
        on_step(f"writing the whole log to {into}")
        _begin(into)
        await _keep_beside(access, into)  # first: a backup that is cut has the keys of its events
        await _write_merged(ledger, directory, into, manifest, damage, witness, progress)
        on_step("reading it back")
        await asyncio.to_thread(intact, into)
    finally:
        await ledger.close()
    on_step("making the stream anew")
    settings = await _remove(access, stream)
    restored = await restore(access, into, progress, stream=stream, settings=settings)
    return Repaired(damage.missing, damage.changed, str(into), restored, keys)


def _begin(into: Path) -> None:
    """Make a new backup without events. Raises BackupMismatch, BackupDamaged, InvalidPayload."""
    with writing_to(into) as fresh:
        if fresh.position:
            raise BackupMismatch(f"{into} holds a backup already: give a new directory")


async def _write_merged(
    ledger: Ledger,
    directory: Path,
    into: Path,
    manifest: Manifest,
    damage: Damage,
    witness: Witness | None,
    progress: Progress,
) -> None:
    """Write the backup's events, then the stream's events after them, and what the backup has of decoded columns.

    Where it has some, its events are in files as they were: columns are those of one file.
    """
    ends = {one.last for one in manifest.segments} if manifest.columns else set()
    with writing_to(into) as fresh:
        writer = BackupWriter(into, fresh, witness)
        last = max(damage.head, manifest.position)
        for batch in read_backup(directory):
            writer.add([one.event for one in batch])
            if writer.position in ends:
                writer.close()
            progress(writer.position, last, 0.0)
        if damage.head > manifest.position:
            async with contextlib.aclosing(ledger.read(manifest.position + 1, batch=_READ_EVENTS)) as batches:
                async for events in batches:
                    writer.add(events)
                    progress(writer.position, last, 0.0)
        written = writer.close().with_tokens(manifest.tokens)
        signed = witness or manifest.signed
        written = written if signed is None else written.with_signed(signed)
        if manifest.columns is not None:
            there = {one.stretch.name for one in written.segments}
            wanted = {name: digest for name, digest in manifest.columns.items() if name in there}
            written = written.with_columns(columns_here(Directory(directory), Directory(into), wanted))
        save(into, written)


async def _keep_beside(access: BrokerAccess, into: Path) -> None:
    """Keep the vault and the words of sessions in the new backup as they are now.

    Raises BrokerUnavailable, BrokerMisconfigured, OSError.
    """
    connection = await BrokerConnection.open(access, "node", name="kledger-repair")
    try:
        await ensure_sessions_stream(access)
        await keep_beside(connection, JetStreamSessions(connection), into)
    finally:
        await connection.close()


def _refuse_unrecoverable(manifest: Manifest, damage: Damage, witness: Witness | None) -> None:
    signed = witness.position if witness else 0
    reached = max(damage.head, manifest.position)
    lost = list(damage.beyond)
    if signed > reached:
        lost.append((reached + 1, signed))
    if lost:
        raise NotRepairable(
            f"the backup ends at position {manifest.position} and the stream lost what came later: "
            f"{spelled(lost)}. Nothing was changed. Repair from a newer backup; or bring this one back into a new "
            "data directory with kledger restore-backup, which ends at the backup's position",
            positions=lost,
        )


async def _remove(access: BrokerAccess, stream: str) -> JsonObject:
    """Delete the damaged stream; returns its settings."""
    connection = await BrokerConnection.open(access, "admin", name="kledger-repair")
    try:
        info = await connection.api(f"STREAM.INFO.{stream}")
        if error_code(info):
            raise error_of(info, f"a look at the stream {stream}")
        answer = await connection.api(f"STREAM.DELETE.{stream}", timeout=_DELETE_TIMEOUT)
        if error_code(answer):
            raise error_of(answer, f"to remove the damaged stream {stream}")
    finally:
        await connection.close()
    settings: JsonObject = info["config"]
    return settings


def spelled(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges as text: `3, 7 to 9`."""
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges)


class _Ranges:
    """Collects ascending positions as ranges."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.count = 0

    def add(self, position: int) -> None:
        self.count += 1
        if self.ranges and self.ranges[-1][1] == position - 1:
            self.ranges[-1] = (self.ranges[-1][0], position)
        else:
            self.ranges.append((position, position))
