"""Half a segment: what is gone of it, and does whatever folds from the archive name it and end right?"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kledger import LedgerClient
from kledger.contract.words import StartableJob
from ledger.archive.manifest import NAME
from ledger.archive.segments import ARCHIVE, COLUMNS, EVENT_FILE, EVENTS, Segment, segments_in
from projections.archive.writing import is_due, undecoded
from tests.patience import PATIENCE

NOBODY = "nobody"
JOBS: tuple[StartableJob, ...] = ("rebuild", "verify", "replay")

Halve = Callable[[Path, Path, random.Random], bool]
"""Damages a segment by its directories of events and columns; whether a reader has to name it."""


def _cut(path: Path, chance: random.Random) -> bool:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])
    return True


def _gone(path: Path) -> bool:
    path.unlink()
    return True


def _column(columns: Path, chance: random.Random) -> Path:
    return chance.choice(sorted(columns.glob("*.parquet")))


def _a_byte(events: Path, columns: Path, chance: random.Random) -> bool:
    path = chance.choice(sorted([*events.iterdir(), *columns.iterdir()]))
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return True


def _emptied(directory: Path) -> bool:
    for path in directory.iterdir():
        path.unlink()
    return True


def _removed(directory: Path) -> bool:
    """What is gone as a whole is no damage: the events are read from the log, columns are decoded."""
    shutil.rmtree(directory)
    return False


HALVES: Mapping[str, Halve] = {
    "events-cut": lambda events, _, chance: _cut(events / EVENT_FILE, chance),
    "events-unsigned": lambda events, _, __: _gone(events / NAME),
    "manifest-alone": lambda events, _, __: _gone(events / EVENT_FILE),
    "events-emptied": lambda events, _, __: _emptied(events),
    "columns-alone": lambda events, _, __: _removed(events),
    "columns-cut": lambda _, columns, chance: _cut(_column(columns, chance), chance),
    "columns-unsigned": lambda _, columns, __: _gone(columns / NAME),
    "column-gone": lambda _, columns, chance: _gone(_column(columns, chance)),
    "events-alone": lambda _, columns, __: _removed(columns),
    "a-byte": _a_byte,
}


def whole(data: Path, head: int, size: int) -> bool:
    """Whether all that the log has for whole segments is in the archive, with its columns."""
    return not is_due(data, head, size) and bool(segments_in(data / ARCHIVE / EVENTS))


def halve(data: Path, half: str, chance: random.Random) -> tuple[Segment, bool]:
    """Damage one segment of a whole archive; whether a reader has to name it."""
    archive = data / ARCHIVE
    assert not undecoded(archive)
    segment = chance.choice(segments_in(archive / EVENTS))
    return segment, HALVES[half](archive / EVENTS / segment.name, archive / COLUMNS / segment.name, chance)


def job_result(client: LedgerClient, job: StartableJob, into: Path) -> dict[str, Any]:
    """What a job that folds from the archive came to. Raises what the client raises."""
    into.unlink(missing_ok=True)
    began = client.start_job(job, into=into if job == "replay" else None)
    done = client.wait_job(began["id"], timeout=PATIENCE)
    assert done["result"] is not None
    return done["result"]


def wrong_with(result: Mapping[str, Any], segment: Segment, named: bool | None) -> list[str]:
    """What a job did wrong beside half a segment; `named` says whether it had to name it, where that is known."""
    wrong = [] if result.get("equal", True) else [f"beside half of {segment.name} a fold is not the view"]
    found = [each["segment"] for each in result["archive"]["damaged"]]
    if named is not None and found != [segment.name] * named:
        wrong.append(f"half of {segment.name} was gone, named are {found}")
    return wrong


def until_whole(data: Path, head: Callable[[], int], size: int) -> bool:
    """Wait until the archive is whole, for as long as a busy machine may take; whether it is."""
    deadline = time.monotonic() + PATIENCE
    while not whole(data, head(), size):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
