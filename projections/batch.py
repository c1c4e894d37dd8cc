"""How does a piece of the log become part of the views? Decode, gate, fold: one transaction with the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from ledger.errors import LogGap
from ledger.event import StoredEvent
from projections.decode import Refusal, create_envelopes, decode
from projections.duckdb import checkpoint_of, transaction
from projections.gate import gate
from projections.refused import fold as refused_fold
from projections.views import VIEWS


@dataclass(frozen=True, slots=True)
class Folded:
    """What one batch came to: the view's position after it, and how many events counted or did not."""

    position: int
    accepted: int
    refused: int


def fold_batch(con: duckdb.DuckDBPyConnection, events: list[StoredEvent]) -> Folded:
    """Fold consecutive events into the view.

    Events at or before the checkpoint were folded already and change nothing. Raises LogGap when the first
    new event is not the one after the checkpoint, or positions inside the batch are not consecutive; then
    nothing is changed.
    """
    position, _ = checkpoint_of(con)
    events = [event for event in events if event.position > position]
    if not events:
        return Folded(position, 0, 0)
    if events[0].position != position + 1 or events[-1].position - position != len(events):
        raise LogGap(
            f"the view is at position {position}, the log goes on with {events[0].position} to "
            f"{events[-1].position} in {len(events)} events: events are missing, nothing is folded"
        )
    with transaction(con):
        facts, unfit = decode(con, events)
        verdicts = None
        if facts:
            create_envelopes(con, facts)
            verdicts = gate(con)
            con.register("verdicts", verdicts)
            con.execute(_ACCEPTED)
            for view in VIEWS:
                if view.fold is not None:
                    view.fold(con, facts)
        refusals = [*unfit, *_turned_away(con, events)] if verdicts is not None else unfit
        refused_fold.fold(con, refusals)
        if verdicts is not None:
            con.unregister("verdicts")
        last = events[-1]
        con.execute(
            "UPDATE checkpoints SET position = ?, stored_us = ? WHERE name = 'views'",
            [last.position, last.stored_ns // 1000],
        )
    return Folded(last.position, len(events) - len(refusals), len(refusals))


_ACCEPTED = """
CREATE OR REPLACE TEMP TABLE accepted AS
SELECT n.position, n.stream_time, n.type, n.version, n.event_id, n.time, n.source, n.actor, n.trace_id,
    n.message_id, n.causation_id, n.correlation_id, n.traceparent, n.owner,
    v.org, v.entity, v.entity_id, v.item_version, v.closes
FROM envelopes n JOIN verdicts v ON v.position = n.position
WHERE v.code IS NULL
"""


def _turned_away(con: duckdb.DuckDBPyConnection, events: list[StoredEvent]) -> list[Refusal]:
    first = events[0].position
    return [
        Refusal(events[position - first], code, reason)
        for position, code, reason in con.execute(
            "SELECT position, code, reason FROM verdicts WHERE code IS NOT NULL ORDER BY position"
        ).fetchall()
    ]
