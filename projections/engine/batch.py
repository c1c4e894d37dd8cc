"""Fold of a batch of events into the views: decode, gate, fold, in one transaction with the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, runtime_checkable

from kledger.contract.errors import LogGap
from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.store.parked import NONE_PARKED, Parked
from projections.engine.decode import Decoded, decode
from projections.engine.duckdb import transaction
from projections.engine.gate import gate
from projections.engine.registry import FOLDS, LANES, Fold
from projections.engine.row_fold import fold_few
from projections.engine.unsealing import Extent, Opened, open_events
from projections.engine.withheld import named, withhold
from projections.fold_kit import erased
from projections.fold_kit.decisions import Refusal
from projections.fold_kit.workbench import Facts, Workbench
from projections.views.recalls import retention
from projections.views.recalls.fold import pack
from projections.views.refused import fold as refused_fold

# Up to this many events and bytes, a batch is folded row by row; above either, with set-based statements. They take
# more of the processor up to some 150 events, but leave the interpreter to the event loop while DuckDB works. The limit
# of bytes counts too: a few kilobytes may hold a list of a thousand, each of which is a row in Python.
SMALL = 64
SMALL_BYTES = 64 * 1024


@runtime_checkable
class Packed(Protocol):
    """A sequence of events of which one costs more to get than many do together."""

    def unpack(self, places: Sequence[int]) -> None:
        """Have the events at these places at hand."""


@dataclass(frozen=True, slots=True)
class Folded:
    """Result of one batch: the view's position after it, and how many events were accepted and refused."""

    position: int
    accepted: int
    refused: int


def fold_batch(bench: Workbench, events: list[StoredEvent], parked: Parked = NONE_PARKED) -> Folded:
    """Fold consecutive events into the view; those that are parked are refused.

    Idempotent: events at or before the checkpoint change nothing. Raises LogGap when the first new event is not the
    one after the checkpoint, or positions inside the batch are not consecutive; then nothing is changed.
    """
    position = bench.position()
    events = [event for event in events if event.position > position]
    if not events:
        return Folded(position, 0, 0)
    _check_order(position, events[0].position, events[-1].position, len(events))
    opened = ready(bench.keyring, events, parked)
    if bench.has_lanes or len(events) > SMALL or sum(len(event.body) for event in events) > SMALL_BYTES:
        return _fold_many(bench, decode(bench.parser, opened), parked)
    with _fold(bench, opened):
        refusals = fold_few(bench, list(opened.events))
        _keep_refused(opened, refusals, [], parked, bench)
    if bench.identities is not None and bench.identities.upto >= position:
        bench.identities.upto = events[-1].position
    return _folded(opened, len(refusals))


def fold_decoded(bench: Workbench, decoded: Decoded, parked: Parked = NONE_PARKED) -> Folded:
    """Fold a batch that was decoded ahead, as fold_batch would."""
    opened, position = decoded.opened, bench.position()
    if opened.extent.first <= position:
        return fold_batch(bench, list(opened.stored), parked)
    _check_order(position, opened.extent.first, opened.extent.last, len(opened.stored))
    return _fold_many(bench, decoded, parked)


def ready(keyring: Keyring, stored: list[StoredEvent], parked: Parked) -> Opened:
    """A batch ready to be decoded: parked events blanked, sealed values opened. Raises what the vault raises."""
    return replace(open_events(keyring, withhold(stored, parked)), stored=stored)


def _check_order(position: int, first: int, last: int, count: int) -> None:
    if first != position + 1 or last - position != count:
        raise LogGap(
            f"the view is at position {position}, the log goes on with {first} to {last} in {count} events: events are "
            "missing, nothing is folded"
        )


def _fold_many(bench: Workbench, decoded: Decoded, parked: Parked) -> Folded:
    """Fold with set-based statements."""
    opened, facts = decoded.opened, tuple(decoded.parsed)
    with _fold(bench, opened):
        rejected = gate(bench, decoded)
        refused = len(decoded.refused) + len(rejected)
        if refused < len(opened.events):
            bench.present(erased.of_batch(opened.erased))
            for lane, folds in LANES.items():
                bench.in_lane(lane, partial(_all, folds, facts))
            _all(FOLDS, facts, bench)
        bench.in_lane("log", partial(_keep_refused, opened, decoded.refused, rejected, parked))
        bench.clear()
    return _folded(opened, refused)


def _all(folds: Sequence[Fold], facts: Facts, bench: Workbench) -> None:
    for fold in folds:
        fold(bench, facts)


def _keep_refused(
    opened: Opened, refusals: list[Refusal], rejected: list[tuple[int, str, str]], parked: Parked, bench: Workbench
) -> None:
    """Keep what is refused: the `refusals`, and what the gate has `rejected`."""
    events, first = opened.events, opened.extent.first
    if isinstance(events, Packed):
        events.unpack([*(each.event.position - first for each in refusals), *(at - first for at, *_ in rejected)])
    refusals = refusals + [Refusal(events[at - first], code, reason) for at, code, reason in rejected]
    refused_fold.fold(bench.con, named(opened.as_stored(refusals), opened.stored, parked))


@contextmanager
def _fold(bench: Workbench, opened: Opened) -> Iterator[None]:
    """One transaction around the body, which has the folds, and the checkpoint."""
    extent = opened.extent
    bench.at(None)
    with transaction(bench.con):
        erased.keep(bench.con, opened.erased)
        yield
        bench.in_lane("recalls", partial(_keep_less, extent))
        bench.con.execute(
            f"UPDATE checkpoints SET position = {extent.last}, stored_us = {extent.last_ns // 1000} "
            "WHERE name = 'views'"
        )
    bench.at(extent.last)


def _keep_less(extent: Extent, bench: Workbench) -> None:
    """Pack the recalls that wait, and reduce those that are past their retention."""
    pack(bench, extent.first, extent.last)
    retention.fold(bench, extent.earliest_ns, extent.latest_ns)


def _folded(opened: Opened, refused: int) -> Folded:
    return Folded(opened.extent.last, len(opened.stored) - refused, refused)
