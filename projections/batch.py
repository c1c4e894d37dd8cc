"""How does a piece of the log become part of the views? Decode, gate, fold: one transaction with the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.errors import LogGap
from ledger.event import StoredEvent
from ledger.parked import NONE_PARKED, Parked
from projections.decode import Refusal, decode, fill_envelopes
from projections.duckdb import transaction
from projections.few import fold_few
from projections.gate import gate
from projections.refused import fold as refused_fold
from projections.views import VIEWS
from projections.withheld import named, withhold
from projections.workbench import Workbench

# Up to so many events are folded one by one; from there on sets are faster.
SMALL = 64


@dataclass(frozen=True, slots=True)
class Folded:
    """What one batch came to: the view's position after it, and how many events counted or did not."""

    position: int
    accepted: int
    refused: int


def fold_batch(bench: Workbench, events: list[StoredEvent], parked: Parked = NONE_PARKED) -> Folded:
    """Fold consecutive events into the view; those that are parked are refused.

    Events at or before the checkpoint were folded already and change nothing. Raises LogGap when the first
    new event is not the one after the checkpoint, or positions inside the batch are not consecutive; then
    nothing is changed.
    """
    position = bench.position()
    events = [event for event in events if event.position > position]
    if not events:
        return Folded(position, 0, 0)
    if events[0].position != position + 1 or events[-1].position - position != len(events):
        raise LogGap(
            f"the view is at position {position}, the log goes on with {events[0].position} to "
            f"{events[-1].position} in {len(events)} events: events are missing, nothing is folded"
        )
    with transaction(bench.con):
        shown = withhold(events, parked)
        refusals = fold_few(bench.con, shown) if len(shown) <= SMALL else _fold_many(bench, shown)
        refused_fold.fold(bench.con, named(refusals, events, parked))
        last = events[-1]
        bench.con.execute(
            f"UPDATE checkpoints SET position = {last.position}, stored_us = {last.stored_ns // 1000} "
            "WHERE name = 'views'"
        )
    return Folded(last.position, len(events) - len(refusals), len(refusals))


def _fold_many(bench: Workbench, events: list[StoredEvent]) -> list[Refusal]:
    """Fold set by set; returns what does not count."""
    facts, refusals = decode(bench, events)
    if facts:
        fill_envelopes(bench, facts)
        first = events[0].position
        refusals += [Refusal(events[at - first], code, reason) for at, code, reason in gate(bench, facts)]
    if len(refusals) < len(events):
        for view in VIEWS:
            if view.fold is not None:
                view.fold(bench, facts)
    bench.clear()
    return refusals
