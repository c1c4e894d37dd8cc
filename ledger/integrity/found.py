"""Found: what the jobs of a node found not intact, kept on disk until it is mended or a later job finds it intact.

A job is forgotten when the node ends, and what it found is not mended by that. So the health of a node reads it here.
Whoever reaches the node may ask for its health: no text here has a path of its machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Literal

import orjson

from ledger.broker.server_config import write_private
from ledger.integrity.audit_evidence import Finding
from ledger.integrity.notary_start import NotaryFiles

FILE = "found.json"
Part = Literal["log", "keys", "vault", "views", "backup"]
"""What was looked at."""
MENDS_LOG = "bring the events back from a backup that has them: stop the node, kledger repair --from BACKUP --data DIR"
MENDS_KEYS = "bring them back from a backup that has them: stop the node, kledger repair --from BACKUP --data DIR"
MENDS_BACKUP = (
    "kledger backup --check DIR says more; take these files from another copy of it, or back up into a new directory"
)
_MOST_TOLD = 3
_OF_SIGNATURES = {"checkpoint", "key"}
_OF_LEAVES = {"leaves"}


@dataclass(frozen=True, slots=True)
class Found:
    """What a job found not intact, in words, and what mends it; `time` is when it was kept."""

    job: str
    part: Part
    what: str
    mend: str
    time: str = ""

    def __str__(self) -> str:
        return f"{self.job} found at {self.time}: {self.what}; {self.mend}"


def found(files: NotaryFiles) -> list[Found]:
    """What is not mended yet. Where that cannot be read this is said instead, until an audit finds the log intact."""
    path = files.directory / FILE
    try:
        return [Found(**told) for told in orjson.loads(path.read_bytes())]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        what = f"something, and {path.parent.name}/{FILE}, which has it, cannot be read ({error.__class__.__name__})"
        return [Found("a job", "log", what, "run kledger audit", "some time")]


def remember(files: NotaryFiles, one: Found) -> None:
    """Keep what a job found, in the place of what it found of this part before. Raises OSError."""
    others = [each for each in found(files) if (each.job, each.part) != (one.job, one.part)]
    _write(files, [*others, replace(one, time=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")])


def is_intact(files: NotaryFiles, part: Part) -> None:
    """Forget what was found of a part: it was mended, or is found intact. Raises OSError."""
    kept = found(files)
    left = [each for each in kept if each.part != part]
    if left != kept:
        _write(files, left)


def found_by_audit(findings: Sequence[Finding]) -> Found:
    """The findings of an audit, the first of them in words."""
    kinds = {one.kind for one in findings}
    if kinds <= _OF_LEAVES:
        mend = "restart the node, then run kledger audit"
    elif kinds <= _OF_LEAVES | _OF_SIGNATURES:
        mend = "bring the directories chain and keys back from a copy, then run kledger audit"
    else:
        mend = MENDS_LOG
    return Found("audit", "log", _first([one.message for one in findings]), mend)


def found_in_backup(job: str, problems: Sequence[str]) -> Found:
    """What is damaged in a backup, the first of it in words."""
    return Found(job, "backup", f"a backup is damaged: {_first(problems)}", MENDS_BACKUP)


def lost_by_vault(job: str, keys: object) -> Found:
    """Keys of persons that a backup has and the vault has no more."""
    return Found(job, "keys", f"the vault has lost keys of persons that a backup has: {keys} of them", MENDS_KEYS)


def missing_from_vault(records: int) -> Found:
    """Records that the vault had when they were last counted, and has no more, as a start finds them."""
    mend = f"{MENDS_KEYS}. Do so before anybody says more: who does gets another key"
    return Found("start", "vault", f"the vault has lost {records:,} of its records, which hold keys of persons", mend)


def missing_from_log(job: str, first: object, last: object) -> Found:
    """Positions that a log does not have."""
    what = f"position {first} is missing" if first == last else f"positions {first} to {last} are missing"
    return Found(job, "log", what, MENDS_LOG)


def _first(told: Sequence[str]) -> str:
    more = len(told) - _MOST_TOLD
    return "; ".join([*told[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])])


def _write(files: NotaryFiles, kept: Sequence[Found]) -> None:
    path = files.directory / FILE
    if kept:
        write_private(path, orjson.dumps([asdict(one) for one in kept], option=orjson.OPT_INDENT_2) + b"\n")
    else:
        path.unlink(missing_ok=True)
