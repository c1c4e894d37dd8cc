"""Known records: how many the vault of a node had when they were last counted, kept beside the node's own keys.

The keys and the tombstone of a person count once: so the vault never has fewer than before, as a key that is destroyed
leaves its tombstone there. A vault with fewer has lost some, as of a damaged disk. Nothing else tells that in time:
whoever speaks next gets another key, and the words that the lost one sealed are read from the views, until these are
folded anew. How many are lost is kept as well: what comes later makes the vault grow, and brings none of them back.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import structlog

from ledger.broker.server_config import write_private

log = structlog.get_logger(__name__)

_FILE = "vault-records"
_BY_PERSONS = b"by-persons"
_MOST_DIGITS = 20


class Count(NamedTuple):
    """How many records a vault has: all of them, and with those of one person as one."""

    records: int
    by_persons: int


class Known(NamedTuple):
    """How many records there were at the last count, and how many of those of before are lost.

    An earlier version did not count those of one person as one.
    """

    records: int = 0
    lost: int = 0
    by_persons: bool = False


def known_records(keys: Path) -> Known:
    """What was counted last, as the file in this directory has it; nothing where it is not there, or cannot be read."""
    try:
        words = (keys / _FILE).read_bytes().split()
    except OSError:
        return Known()
    if by_persons := words[2:] == [_BY_PERSONS]:
        del words[2:]
    numbers = [int(each) for each in words if each.isdigit() and len(each) <= _MOST_DIGITS]
    if not numbers or len(numbers) != len(words) or len(numbers) > 2:
        return Known()
    records, lost, *_ = *numbers, 0
    return Known(records, lost, by_persons)


def found_records(keys: Path, found: Count) -> Known:
    """What is known once so many were found at a start. A count that is there and cannot be read is logged."""
    known = known_records(keys)
    if known == Known() and (keys / _FILE).exists():  # a count that was kept is never of none
        log.warning("how many records the vault had is not known: none of them is missed", file=str(keys / _FILE))
    there = found.by_persons if known.by_persons else found.records
    return Known(found.by_persons, known.lost + max(0, known.records - there), by_persons=True)


def keep_known(keys: Path, known: Known) -> None:
    """Keep a count, unless there were more before and none is lost since. Raises OSError."""
    before = known_records(keys)
    if known.lost != before.lost or known.by_persons != before.by_persons or known.records > before.records:
        how = b" " + _BY_PERSONS if known.by_persons else b""
        write_private(keys / _FILE, b"%d %d%b\n" % (known.records, known.lost, how))


def brought_back(keys: Path, records: int) -> int:
    """Keep that so many of those that were lost are there again; how many are still lost. Raises OSError.

    The next start counts by how many the vault has grown; where none is lost, anew.
    """
    known = known_records(keys)
    left = max(0, known.lost - records)
    if left:
        keep_known(keys, known._replace(lost=left))
    else:
        (keys / _FILE).unlink(missing_ok=True)
    return left
