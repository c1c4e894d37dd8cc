"""Known directories of an archive: what a node has seen there, kept beside its chain, so that it misses what goes.

A directory that is removed leaves no trace in the archive itself, and what is not there looks like what is still to be
written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import orjson
import structlog

from ledger.archive.segments import COLUMNS, EVENTS, Segment, segment_of, segments_in
from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.integrity.notary_start import NotaryFiles

log = structlog.get_logger(__name__)

FILE = "archived.json"


def directories_in(archive: Path) -> frozenset[str]:
    """The directories of segments that are there, by their paths in the archive: `events/FIRST-LAST`."""
    return frozenset(f"{part}/{one.name}" for part in (EVENTS, COLUMNS) for one in segments_in(archive / part))


def known_directories(files: NotaryFiles) -> frozenset[str]:
    """What was kept last; nothing where nothing was, or where that cannot be read, which is logged."""
    path = files.directory / FILE
    try:
        known = frozenset(map(str, orjson.loads(path.read_bytes())))
        for name in known:
            segment_of(name.partition("/")[2])
        return known
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError) as error:
        log.warning("what was archived is not known: nothing of it is missed", file=str(path), why=str(error))
        return frozenset()


def keep_known(files: NotaryFiles, directories: Collection[str]) -> None:
    """Keep what is in the archive. Raises OSError."""
    write_private(files.directory / FILE, orjson.dumps(sorted(directories)) + b"\n")


def of_segment(segment: str, file: str = EVENTS) -> set[str]:
    """The directories that go where a segment goes, or its columns alone where `file`, a path, is one of them."""
    columns = f"{COLUMNS}/{segment}"
    return {columns} if file.startswith(f"{COLUMNS}/") else {f"{EVENTS}/{segment}", columns}


def missed(gone: Collection[str], there: Collection[str]) -> Iterator[JsonObject]:
    """`segment`, `file` and `reason` of what is gone; one for all, where a whole part of the archive is."""
    for part in (EVENTS, COLUMNS):
        lost = sorted(segment_of(name.partition("/")[2]) for name in gone if name.startswith(f"{part}/"))
        if lost and not any(name.startswith(f"{part}/") for name in there):
            all_of_them = Segment(lost[0].first, lost[-1].last).name
            yield {"segment": all_of_them, "file": part, "reason": "it was removed, with all of its segments"}
        else:
            yield from ({"segment": one.name, "file": f"{part}/{one.name}", "reason": "it was removed"} for one in lost)
