"""Fold of recalls: one row for each event, as it was decoded. No other view keeps anything of it."""

from __future__ import annotations

import duckdb

from ledger.events.recall import RecallServed
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.recalls.tables import KEPT, PARSED

PACK_EVERY = 1_000
"""Positions after which the recalls that wait are packed; so many at once are not made to wait."""
_PACK = f"""
INSERT INTO packed_recalls SELECT {KEPT}, {PARSED} FROM waiting_recalls ORDER BY position;
DELETE FROM waiting_recalls
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's recalls."""
    if RecallServed not in facts:
        return
    relation = table_of(RecallServed)
    if len(bench.presented(relation)) < PACK_EVERY:
        bench.run(f"INSERT INTO waiting_recalls SELECT {KEPT}, data FROM {relation}")
    else:
        bench.run(f"INSERT INTO packed_recalls SELECT {KEPT}, d FROM {relation}")


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append a few recalls."""
    insert(
        con,
        "waiting_recalls",
        (
            (
                *(c.position, Moment(c.happened_us), Moment(c.stored_us), c.envelope.id, c.org, c.entity_id),
                *(c.envelope.actor, c.trace_id, c.message_id, c.envelope.causationid, c.envelope.correlationid),
                *(c.envelope.traceparent, c.envelope.source, c.fact.model_dump_json()),
            )
            for c in counted
            if isinstance(c.fact, RecallServed)
        ),
    )


def pack(bench: Workbench, first: int, last: int) -> None:
    """Pack what waits, where a batch from the position `first` to `last` has a multiple of PACK_EVERY in it."""
    if (first - 1) // PACK_EVERY < last // PACK_EVERY:
        bench.run(_PACK)
