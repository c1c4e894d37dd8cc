"""Segments of the archive: consecutive events in one directory, which appears whole or not at all.

    archive/events/FIRST-LAST/     events.parquet, manifest.json       the events as the log has them
    archive/columns/FIRST-LAST/    one Parquet file for each event name, manifest.json       decoded

A directory is written under another name, synced and renamed. One that was begun and not finished is removed by the
next writer, and is never read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from kledger.contract.errors import ServiceFailed
from ledger.runtime.synced import sync

ARCHIVE, EVENTS, COLUMNS = "archive", "events", "columns"
EVENT_FILE = "events.parquet"
SEGMENT_EVENTS = 50_000
SEGMENT_BYTES = 64 * 1024 * 1024
"""Bodies of a segment: it is folded as one batch, and one more is read meanwhile."""
_NAME = re.compile(r"(\d{15})-(\d{15})")
_DRAFT, _ASIDE = ".part", ".aside"


class Segment(NamedTuple):
    """The events from position `first` to `last`."""

    first: int
    last: int

    @property
    def name(self) -> str:
        """The name of its directories; names sort by position."""
        return f"{self.first:015d}-{self.last:015d}"


def events_file(archive: Path, segment: Segment) -> Path:
    """The file with the events of a segment."""
    return archive / EVENTS / segment.name / EVENT_FILE


def segment_of(name: str) -> Segment:
    """The segment with this name. Raises ValueError."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"{name!r} is not the name of a segment")
    return Segment(int(found[1]), int(found[2]))


def segments_in(directory: Path) -> list[Segment]:
    """The segments with a directory in `directory`, by position; none where that is missing."""
    try:
        names = [entry.name for entry in directory.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(Segment(int(found[1]), int(found[2])) for name in names if (found := _NAME.fullmatch(name)))


@contextmanager
def whole_directory(directory: Path, *, over: bool = False) -> Iterator[Path]:
    """A draft directory to write into; it becomes `directory`, durably, when the block succeeds. Raises OSError.

    With `over` it takes the place of one that is there: a crash in between leaves neither.
    """
    directory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = directory.with_name(directory.name + _DRAFT)
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    try:
        yield draft
        for path in (*sorted(draft.iterdir()), draft):
            sync(path)
        if over:
            remove(directory)
        draft.rename(directory)
        sync(directory.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def only_writer(archive: Path) -> Iterator[None]:
    """Lock the archive for one writer: that of a killed node may still be at work. Raises ServiceFailed, OSError."""
    archive.mkdir(exist_ok=True, mode=0o700)
    with os.fdopen(os.open(archive / "lock", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ServiceFailed("another process still writes the archive") from error
        yield


def remove(directory: Path) -> None:
    """Remove a segment's directory, if it is there; after a crash in between it is no segment any more."""
    leaving = directory.with_name(f"{directory.name}.gone{_DRAFT}")
    shutil.rmtree(leaving, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        directory.rename(leaving)
    shutil.rmtree(leaving, ignore_errors=True)


def set_aside(archive: Path, segment: Segment, file: str = EVENTS) -> None:
    """Take a segment out of the archive, or its columns alone where `file`, a path in the archive, is one of them.

    Its events stay beside it until they are written anew: where the log is damaged too, they may be all that is left.
    """
    remove(archive / COLUMNS / segment.name)
    if file.startswith(f"{COLUMNS}/"):
        return
    aside = archive / EVENTS / f"{segment.name}{_ASIDE}"
    shutil.rmtree(aside, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        (archive / EVENTS / segment.name).rename(aside)


def forget_aside(archive: Path) -> None:
    """Remove what was set aside, where its events are in the archive again."""
    for aside in (archive / EVENTS).glob(f"*{_ASIDE}"):
        found = _NAME.fullmatch(aside.name.removesuffix(_ASIDE))
        if found and not any(gaps(segments_in(archive / EVENTS), int(found[1]), int(found[2]))):
            shutil.rmtree(aside, ignore_errors=True)


def gaps(segments: list[Segment], first: int, last: int) -> Iterator[Segment]:
    """The stretches from `first` to `last` that are in none of the segments."""
    at = first
    for segment in segments:
        if at < segment.first <= last:
            yield Segment(at, segment.first - 1)
        at = max(at, segment.last + 1)
    if at <= last:
        yield Segment(at, last)


def remove_drafts(archive: Path) -> None:
    """Remove what a writer has begun and not finished."""
    for part in (EVENTS, COLUMNS):
        for draft in (archive / part).glob(f"*{_DRAFT}"):
            shutil.rmtree(draft, ignore_errors=True)


def remove_columns_alone(archive: Path) -> None:
    """Remove columns whose segment is gone: the events that are written again may be another one."""
    for segment in {*segments_in(archive / COLUMNS)} - {*segments_in(archive / EVENTS)}:
        remove(archive / COLUMNS / segment.name)
