"""Views of a restored node: folded from the backup's files while a stream is filled from them.

A process of its own folds, apart from the restore. Its file has a name that no node takes for a live view, until the
restore has shown that the stream has the events that were folded, and the vault the keys. A fold that fails, or that
does not fit in the end, costs nothing: the node folds its views at its first start, as it does where there are none.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from kledger.contract.errors import LedgerError
from ledger.backup.as_archive import BackedUpArchive
from ledger.backup.as_log import BackupLog
from ledger.backup.keys import Records, by_name, kept_keys, names_nobody, vault_holds
from ledger.backup.manifest import Manifest, load
from ledger.broker.access import BrokerAccess
from ledger.broker.subprocess_job import in_own_process, run_child
from ledger.event import JsonObject
from ledger.integrity.signing_keys import VerifyingKey
from ledger.privacy.keyring import Keyring
from ledger.privacy.master_key import kept_master_key
from ledger.privacy.vault_records import KeptRecords
from ledger.progress import Progress, silent
from projections.archive.reading import Archive
from projections.live.files import discard, make_live, unnamed_file
from projections.live.rebuild import folded_into

_BEHIND_THE_RESTORE = 10


class NotFolded(Exception):
    """Why a restored node folds its views itself; the text says it."""


@dataclass(slots=True)
class ViewsOfBackup:
    """Views that are being folded from a backup, with these records of its vault."""

    path: Path
    folding: asyncio.Task[JsonObject] | NotFolded
    records: Records = field(default_factory=dict)
    progress: Progress = silent

    async def put_in_place(self, access: BrokerAccess, manifest: Manifest, progress: Progress) -> None:
        """Make them the live views of the data directory, whose stream was restored from this backup.

        `progress` is called while they are folded. Raises NotFolded, and then nothing is in place.
        """
        self.progress = progress
        if isinstance(self.folding, NotFolded):
            raise self.folding
        try:
            folded = await self.folding
            if folded["files"] != _digests(manifest):
                raise NotFolded("the backup was written to while they were folded")
            if not await vault_holds(access, self.records):
                raise NotFolded("the vault has other keys than the backup had when they were folded")
            await asyncio.to_thread(make_live, self.path)
        except LedgerError as error:
            raise NotFolded(error.message) from error
        except OSError as error:
            raise NotFolded(f"they cannot be put in place: {error.strerror or error}") from error


@asynccontextmanager
async def views_of_backup(
    directory: Path, data: Path, recall_days: int | None = None, key: VerifyingKey | None = None
) -> AsyncIterator[ViewsOfBackup]:
    """Fold the views of a backup into a data directory during the block, with the master key of its node.

    They keep the detail of recalls for `recall_days`. Decoded columns of the backup are read where they are signed with
    `key`; without it all events are decoded. What was not put in place is removed in the end, with the
    directories that were made for it.
    """
    path = unnamed_file(data / "views")
    made = [folder for folder in (data, path.parent) if not folder.exists()]
    views = _begun(directory, data, made, path, recall_days, key)
    try:
        yield views
    finally:
        if isinstance(views.folding, asyncio.Task):
            views.folding.cancel()
            await asyncio.gather(views.folding, return_exceptions=True)
        discard(path)
        for folder in reversed(made):
            with contextlib.suppress(OSError):  # it is in use now
                folder.rmdir()


def _begun(
    directory: Path, data: Path, made: list[Path], path: Path, recall_days: int | None, key: VerifyingKey | None
) -> ViewsOfBackup:
    """The views, of which the folding has begun, or cannot begin."""
    try:
        manifest, records = load(directory), kept_keys(directory)
        master = _master_key(data, records)
        if not manifest.position:
            raise NotFolded("the backup is empty")
        for folder in made:
            folder.mkdir(mode=0o700)
    except LedgerError as error:  # the check of the backup says more
        return ViewsOfBackup(path, NotFolded(error.message))
    except NotFolded as reason:
        return ViewsOfBackup(path, reason)
    except OSError as error:
        return ViewsOfBackup(path, NotFolded(f"no file can be made: {error.strerror or error}"))
    order: JsonObject = {
        "directory": str(directory.absolute()),
        "records": {key: base64.b64encode(record).decode() for key, record in by_name(records).items()},
        "master": master.hex(),
        "path": str(path.absolute()),
        "recall_days": recall_days,
        "key": key.text() if key is not None else "",
    }

    def moving(done: int, total: int, rate: float) -> None:
        views.progress(done, total, rate)

    views = ViewsOfBackup(
        path, asyncio.create_task(in_own_process("projections.live.from_backup", order, moving)), records
    )
    return views


def _digests(manifest: Manifest) -> list[str]:
    """What the files of a backup are told by: the same digests are the same events."""
    return [one.sha256 for one in manifest.segments]


def _master_key(data: Path, records: Records) -> bytes:
    """The master key that opens the records; nothing where it is not needed. Raises WrongMasterKey, NotFolded."""
    if names_nobody(records):
        return b""
    master = kept_master_key(data)
    if master is None:
        raise NotFolded("what persons said needs the master key, which is not there yet")
    return master


async def _fold(order: JsonObject, progress: Progress) -> JsonObject:
    directory, keyring = Path(order["directory"]), None
    manifest = load(directory)
    if order["master"]:
        records = {key: base64.b64decode(record) for key, record in order["records"].items()}
        vault = KeptRecords.opened(records, bytes.fromhex(order["master"]))
        keyring = Keyring.over(vault, asyncio.get_running_loop())
    archive = None
    if order["key"] and manifest.columns:
        os.nice(_BEHIND_THE_RESTORE)  # which takes longer then: it has the processors first
        archive = Archive(BackedUpArchive.of(directory, manifest, VerifyingKey.from_text(order["key"])))
    folded = folded_into(
        BackupLog(directory, manifest.segments),
        Path(order["path"]),
        manifest.position,
        lambda at, rate: progress(at, manifest.position, rate),
        keyring=keyring,
        archive=archive,
        recall_days=order["recall_days"],
    )
    async with folded:
        return {"files": _digests(manifest)}


if __name__ == "__main__":
    run_child(_fold, uvloop.run)
