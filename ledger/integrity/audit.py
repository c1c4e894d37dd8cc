"""Is the log what was signed? Which events were changed, are missing or were moved, and what cannot be seen?

The log is read from its start, past every hole, and each event's leaf is compared with the leaf that a signed
checkpoint vouches for. Where the leaves are lost, the chain from one checkpoint to the next is compared instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ledger.event import JsonObject
from ledger.integrity.audit_evidence import Evidence, Finding, Stretch, split, stretches
from ledger.integrity.chain import HASH_BYTES, chain_head, leaf_hashes
from ledger.store.gap_tolerant_read import Missing, read_what_is_there
from ledger.stream import Ledger

Progress = Callable[[int, int, float], None]

NOTHING_THERE = bytes(HASH_BYTES)
"""Stands for the leaf of an event that is not there; no event has it."""
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found. `intact_up_to` is the last position before anything that is not as signed."""

    head: int
    certified: int
    intact_up_to: int
    findings: list[Finding]
    unseen: list[str]

    @property
    def intact(self) -> bool:
        return not self.findings

    def damaged(self) -> list[tuple[int, int]]:
        """The positions that do not hold what was signed, as ranges in their order, both ends included."""
        ranges = [(one.first, one.last) for one in self.findings if one.first is not None and one.last is not None]
        return sorted(ranges)

    def to_json(self) -> JsonObject:
        return {
            "intact": self.intact,
            "intact_up_to": self.intact_up_to,
            "head": self.head,
            "certified": self.certified,
            "findings": [finding.to_json() for finding in self.findings],
            "unseen": self.unseen,
        }


async def audit(ledger: Ledger, evidence: Evidence, progress: Progress = lambda _done, _total, _rate: None) -> Report:
    """Read the whole log and compare. `progress` gets position, head and events a second.

    Raises BrokerUnavailable.
    """
    head = (await ledger.head()).position
    found, began = bytearray(), time.monotonic()
    async with contextlib.aclosing(read_what_is_there(ledger)) as parts:
        async for part in parts:
            if isinstance(part, Missing):
                found += bytes((part.last - len(found) // HASH_BYTES) * HASH_BYTES)
            else:
                found += b"".join(await asyncio.to_thread(leaf_hashes, part))
            position = len(found) // HASH_BYTES
            progress(position, max(head, position), position / max(time.monotonic() - began, 1e-9))
    return await asyncio.to_thread(compare, evidence, bytes(found))


def compare(evidence: Evidence, found: bytes) -> Report:
    """Compare the leaves that the log has now with the evidence.

    `found` holds 32 bytes a position from 1 on, NOTHING_THERE where the log has no event.
    """
    evidence = replace(evidence, findings=list(evidence.findings), unseen=list(evidence.unseen))
    head, certified = len(found) // HASH_BYTES, evidence.certified
    parts = stretches(evidence)
    vouched = [part for part in parts if part.vouched]
    findings = [*evidence.findings, *_by_leaves(evidence.leaves, found, vouched, head)]
    for part in parts:
        if not part.vouched:
            findings += _by_chain(part, found, head)
    findings += _known_but_gone(evidence, head)
    unseen = list(evidence.unseen)
    if head > certified:
        unseen.insert(0, f"positions {certified + 1} to {head}: they stand behind the last checkpoint, unsigned")
    firsts = [one.first for one in findings if one.first is not None]
    return Report(head, certified, min([certified, head, *(first - 1 for first in firsts)]), findings, unseen)


def _by_leaves(leaves: bytes, found: bytes, vouched: list[Stretch], head: int) -> Iterator[Finding]:
    """What is not as signed where every leaf is known: changed, missing, moved, cut off."""
    wrong = [position for part in vouched for position in _differing(leaves, found, part)]
    if not wrong:
        return
    # A moved event may stand behind the last checkpoint now.
    behind = range(max((part.to for part in vouched), default=0) + 1, head + 1)
    stands: dict[bytes, int] = {}
    for position in [*wrong, *behind]:
        if (leaf := _at(found, position)) != NOTHING_THERE:
            stands.setdefault(leaf, position)
    expected = {_at(leaves, position) for position in wrong}
    moved, changed, missing, cut = [], [], [], []
    for position in wrong:
        here, to = _at(found, position), stands.get(_at(leaves, position))
        if to is not None:
            moved.append((position, to))
        elif position > head:
            cut.append(position)
        elif here == NOTHING_THERE or here in expected:  # nothing, or an event of another position
            missing.append(position)
        else:
            changed.append(position)
    for first, last, to in _shifted(moved):
        told = _positions(first, last, "was", "were")
        yield Finding(
            "moved", f"{told} moved to {to}" + (f" to {to + last - first}" if last > first else ""), first, last, to
        )
    for first, last in _ranges(changed):
        yield Finding("changed", f"{_positions(first, last, 'was', 'were')} changed", first, last)
    for first, last in _ranges(missing):
        yield Finding("missing", f"{_positions(first, last, 'is', 'are')} missing", first, last)
    for first, last in _ranges(cut):
        yield _cut_off(first, last, head)


def _by_chain(part: Stretch, found: bytes, head: int) -> Iterator[Finding]:
    """What can be said of a stretch without its leaves: whether it is as signed, and what is not there."""
    leaves = split(found, part.after, part.to)
    if len(leaves) == part.to - part.after and chain_head(part.head_before, leaves) == part.head:
        return
    gone = [at for at, leaf in enumerate(leaves, part.after + 1) if leaf == NOTHING_THERE]
    for first, last in _ranges(gone):
        yield Finding("missing", f"{_positions(first, last, 'is', 'are')} missing", first, last)
    if head < part.to:
        yield _cut_off(max(head, part.after) + 1, part.to, head)
    if head > part.after:  # what is there cannot be told from what was changed
        first, last = part.after + 1, min(head, part.to)
        yield Finding("range", f"{_positions(first, last, 'is', 'are')} not as signed, or an event in it", first, last)


def _known_but_gone(evidence: Evidence, head: int) -> Iterator[Finding]:
    """The unsigned leaves know of events that the log has no more: a leaf is kept after its event."""
    if evidence.leaf_count > max(head, evidence.certified):
        yield _cut_off(max(head, evidence.certified) + 1, evidence.leaf_count, head)


def _cut_off(first: int, last: int, head: int) -> Finding:
    told = f"the tail is cut off: the log ends at position {head}, {_positions(first, last, 'was', 'were')} part of it"
    return Finding("cut_off", told, first, last)


def _differing(leaves: bytes, found: bytes, part: Stretch) -> Iterator[int]:
    for after in range(part.after, part.to, _AT_ONCE):
        to = min(after + _AT_ONCE, part.to)
        if leaves[after * HASH_BYTES : to * HASH_BYTES] == found[after * HASH_BYTES : to * HASH_BYTES]:
            continue
        yield from (at for at in range(after + 1, to + 1) if _at(leaves, at) != _at(found, at))


def _at(leaves: bytes, position: int) -> bytes:
    """The leaf of a position; NOTHING_THERE behind the end."""
    return leaves[(position - 1) * HASH_BYTES : position * HASH_BYTES] or NOTHING_THERE


def _ranges(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending positions as ranges."""
    for first, last, _ in _shifted((position, position) for position in positions):
        yield first, last


def _shifted(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Ascending (from, to) as (first, last, first to) where neighbours moved by as much."""
    first = last = to = 0
    for position, now in pairs:
        if first and position == last + 1 and now - position == to - first:
            last = position
            continue
        if first:
            yield first, last, to
        first, last, to = position, position, now
    if first:
        yield first, last, to


def _positions(first: int, last: int, one: str, many: str) -> str:
    return f"position {first} {one}" if first == last else f"positions {first} to {last} {many}"
