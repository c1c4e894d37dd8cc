"""Audit: which events of the log were changed, moved or removed since they were signed, and what cannot be checked.

The log is read from its start, past every gap, and each event's leaf is compared with the leaf that a signed
checkpoint attests. Where the leaves are lost, the chain from one checkpoint to the next is compared instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ledger.event import JsonObject
from ledger.integrity.audit_evidence import Evidence, Finding, Segment, segments, split
from ledger.integrity.chain import HASH_BYTES, chain_head, leaf_hashes
from ledger.progress import Progress, silent
from ledger.store.gap_tolerant_read import Missing, read_what_is_there
from ledger.stream import Ledger

NOTHING_THERE = bytes(HASH_BYTES)
"""Placeholder for the leaf of a missing event; no event has this leaf."""
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an audit. `intact_up_to` is the last position before anything that is not as signed."""

    head: int
    certified: int
    intact_up_to: int
    findings: list[Finding]
    unseen: list[str]

    @property
    def intact(self) -> bool:
        return not self.findings

    def damaged(self) -> list[tuple[int, int]]:
        """The damaged positions as sorted ranges, both ends included."""
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


async def audit(ledger: Ledger, evidence: Evidence, progress: Progress = silent) -> Report:
    """Read the whole log and compare. `progress` gets position, head and events a second.

    Raises BrokerUnavailable.
    """
    head = (await ledger.head()).position
    leaves, began = bytearray(), time.monotonic()
    async with contextlib.aclosing(read_what_is_there(ledger)) as parts:
        async for part in parts:
            if isinstance(part, Missing):
                leaves += bytes((part.last - len(leaves) // HASH_BYTES) * HASH_BYTES)
            else:
                leaves += b"".join(await asyncio.to_thread(leaf_hashes, part))
            position = len(leaves) // HASH_BYTES
            progress(position, max(head, position), position / max(time.monotonic() - began, 1e-9))
    return await asyncio.to_thread(compare, evidence, bytes(leaves))


def compare(evidence: Evidence, actual: bytes) -> Report:
    """Compare the leaves that the log has now with the evidence.

    `actual` holds 32 bytes for each position from 1 on, NOTHING_THERE where the log has no event.
    """
    evidence = replace(evidence, findings=list(evidence.findings), unseen=list(evidence.unseen))
    head, certified = len(actual) // HASH_BYTES, evidence.certified
    parts = segments(evidence)
    verified = [part for part in parts if part.verified]
    findings = [*evidence.findings, *_by_leaves(evidence.leaves, actual, verified, head)]
    for part in parts:
        if not part.verified:
            findings += _by_chain(part, actual, head)
    findings += _lost_unsigned(evidence, head)
    unseen = list(evidence.unseen)
    if head > certified:
        unseen.insert(0, f"positions {certified + 1} to {head}: they stand behind the last checkpoint, unsigned")
    firsts = [one.first for one in findings if one.first is not None]
    return Report(head, certified, min([certified, head, *(first - 1 for first in firsts)]), findings, unseen)


def _by_leaves(leaves: bytes, actual: bytes, verified: list[Segment], head: int) -> Iterator[Finding]:
    """Findings where every leaf is known: changed, missing, moved, cut off."""
    wrong = [position for part in verified for position in _differing(leaves, actual, part)]
    if not wrong:
        return
    # A moved event may be after the last checkpoint now.
    unsigned = range(max((part.to for part in verified), default=0) + 1, head + 1)
    now_at: dict[bytes, int] = {}
    for position in [*wrong, *unsigned]:
        if (leaf := _at(actual, position)) != NOTHING_THERE:
            now_at.setdefault(leaf, position)
    expected = {_at(leaves, position) for position in wrong}
    moved, changed, missing, cut = [], [], [], []
    for position in wrong:
        here, to = _at(actual, position), now_at.get(_at(leaves, position))
        if to is not None:
            moved.append((position, to))
        elif position > head:
            cut.append(position)
        elif here == NOTHING_THERE or here in expected:  # no event, or an event of another position
            missing.append(position)
        else:
            changed.append(position)
    for first, last, to in _shifted(moved):
        subject = _positions(first, last, "was", "were")
        yield Finding(
            "moved", f"{subject} moved to {to}" + (f" to {to + last - first}" if last > first else ""), first, last, to
        )
    for first, last in _ranges(changed):
        yield Finding("changed", f"{_positions(first, last, 'was', 'were')} changed", first, last)
    for first, last in _ranges(missing):
        yield Finding("missing", f"{_positions(first, last, 'is', 'are')} missing", first, last)
    for first, last in _ranges(cut):
        yield _cut_off(first, last, head)


def _by_chain(part: Segment, actual: bytes, head: int) -> Iterator[Finding]:
    """Findings for a segment without signed leaves: whether it is as signed, and what is missing."""
    leaves = split(actual, part.after, part.to)
    if len(leaves) == part.to - part.after and chain_head(part.head_before, leaves) == part.head:
        return
    gone = [at for at, leaf in enumerate(leaves, part.after + 1) if leaf == NOTHING_THERE]
    for first, last in _ranges(gone):
        yield Finding("missing", f"{_positions(first, last, 'is', 'are')} missing", first, last)
    if head < part.to:
        yield _cut_off(max(head, part.after) + 1, part.to, head)
    if head > part.after:  # without leaves, a changed event cannot be told from an intact one
        first, last = part.after + 1, min(head, part.to)
        yield Finding("range", f"{_positions(first, last, 'is', 'are')} not as signed, or an event in it", first, last)


def _lost_unsigned(evidence: Evidence, head: int) -> Iterator[Finding]:
    """Events that the log no longer has though their unsigned leaves exist: a leaf is written after its event."""
    if evidence.leaf_count > max(head, evidence.certified):
        yield _cut_off(max(head, evidence.certified) + 1, evidence.leaf_count, head)


def _cut_off(first: int, last: int, head: int) -> Finding:
    lost = _positions(first, last, "was", "were")
    return Finding("cut_off", f"the tail is cut off: the log ends at position {head}, {lost} part of it", first, last)


def _differing(leaves: bytes, actual: bytes, part: Segment) -> Iterator[int]:
    """The positions of a segment whose leaf differs, compared a thousand at a time first."""
    for after in range(part.after, part.to, _AT_ONCE):
        to = min(after + _AT_ONCE, part.to)
        if leaves[after * HASH_BYTES : to * HASH_BYTES] == actual[after * HASH_BYTES : to * HASH_BYTES]:
            continue
        yield from (at for at in range(after + 1, to + 1) if _at(leaves, at) != _at(actual, at))


def _at(leaves: bytes, position: int) -> bytes:
    """The leaf of a position; NOTHING_THERE after the end."""
    return leaves[(position - 1) * HASH_BYTES : position * HASH_BYTES] or NOTHING_THERE


def _ranges(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending positions as ranges."""
    for first, last, _ in _shifted((position, position) for position in positions):
        yield first, last


def _shifted(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
    """Group ascending (from, to) pairs into (first, last, first to) where neighbours moved by the same distance."""
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
