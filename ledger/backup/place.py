"""Place of a backup: a directory of files, each of which appears whole or not at all.

A file has the same name wherever the backup is, such as `manifest.json` or `events/….parquet`: in a directory of this
machine (Directory), or in an object store (ledger/backup/object_store.py:ObjectStore).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kledger.contract.errors import BackupMismatch, InvalidPayload
from ledger.archive.segments import COLUMNS
from ledger.broker.server_config import write_private
from ledger.runtime.same_file import same_file
from ledger.runtime.synced import sync
from ledger.runtime.whole_file import check_directory_place

MANIFEST, EVENTS, LOCK = "manifest.json", "events", "lock"
KEYS, SESSIONS = BESIDE = "keys.json", "sessions.json"
"""What belongs to persons, beside the events: their keys, and the name of the file with the words of sessions."""


class Place(Protocol):
    """Where the files of one backup are; `str` of it is what a message calls it. Methods raise OSError, LedgerError."""

    def sizes(self) -> Mapping[str, int]:
        """The bytes of every file by its name; none where there is no backup yet."""

    def read(self, name: str) -> bytes:
        """The content of a small file. Raises FileNotFoundError where it is missing."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, in place of an earlier one."""

    def draft(self, name: str) -> Path:
        """A path of this machine to write the next file to, for `put`."""

    def same(self, file: Path, name: str) -> Path:
        """A draft with the content of a file of this machine that nobody changes any more."""

    def put(self, draft: Path, name: str) -> None:
        """Have a draft appear under its name, durably."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; or what `sizes` tells of an empty folder."""

    def local(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """The content of a file as a path of this machine, to read. Raises FileNotFoundError where it is missing."""

    def only_writer(self) -> contextlib.AbstractContextManager[None]:
        """Keep others from writing meanwhile. Raises BackupMismatch (somebody writes), InvalidPayload (nobody can)."""


Where = Path | Place


def place_of(where: Where) -> Place:
    """The place itself, or that of a directory."""
    return Directory(where) if isinstance(where, Path) else where


@dataclass(frozen=True, slots=True)
class Directory:
    """A backup in a directory of this machine, for its owner's eyes alone."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    def sizes(self) -> Mapping[str, int]:
        """The bytes of every file by its name; a folder that is empty or a link has none, and a slash at its end."""
        found: dict[str, int] = {}
        for folder, folders, files in os.walk(self.path):
            at = Path(folder)
            for name in files:
                found[(at / name).relative_to(self.path).as_posix()] = (at / name).lstat().st_size
            for name in folders:
                if (at / name).is_symlink() or not any((at / name).iterdir()):
                    found[f"{(at / name).relative_to(self.path).as_posix()}/"] = 0
        return found

    def read(self, name: str) -> bytes:
        with self.local(name) as file:
            return file.read_bytes()

    def write(self, name: str, content: bytes) -> None:
        write_private(self.path / name, content)
        sync(self.path)

    def draft(self, name: str) -> Path:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return (self.path / name).with_name(f"{Path(name).name.partition('.')[0]}.part")

    def same(self, file: Path, name: str) -> Path:
        """Raises OSError, also where the file is a link."""
        draft = self.draft(name)
        draft.unlink(missing_ok=True)
        same_file(file, draft)
        return draft

    def put(self, draft: Path, name: str) -> None:
        target = self.path / name
        draft.replace(target)
        sync(target.parent)

    def remove(self, name: str) -> None:
        """The folders of columns go with the last file in them; the name of an empty one has a slash at its end."""
        at = Path(name)
        if not name.endswith("/"):
            with contextlib.suppress(FileNotFoundError):
                (self.path / at).unlink()
            at = at.parent
        while at.parts[:1] == (COLUMNS,):
            with contextlib.suppress(OSError):  # something is in it, or it is a link
                (self.path / at).rmdir()
            at = at.parent

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """Raises OSError, also where no file is in the place of one: who opened a pipe would wait for ever."""
        file = self.path / name
        if not stat.S_ISREG(file.stat().st_mode):
            raise OSError("it is no file")
        yield file

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        check_directory_place(self.path)
        new = not self.path.exists()
        try:
            (self.path / EVENTS).mkdir(parents=True, exist_ok=True, mode=0o700)
            if not (self.path / MANIFEST).exists():
                self.path.chmod(0o700)
            lock = os.fdopen(
                os.open(self.path / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o600), "w"
            )
        except OSError as error:
            raise not_writable(self, error) from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BackupMismatch(f"another backup into {self} is under way: wait for its end") from error
            try:
                yield
            except BaseException:
                if new and not any((self.path / EVENTS).glob("*.parquet")):  # nothing that a next run could resume
                    shutil.rmtree(self.path, ignore_errors=True)
                raise


def not_writable(place: Place, error: OSError) -> InvalidPayload:
    """The error for a place that cannot be written into at all."""
    return InvalidPayload(
        f"the directory {place} cannot be written ({error.strerror or error}): choose another",
        errors=[{"field": "into", "reason": "cannot be written"}],
    )
