"""Fold of recalls: one row for each event, as it was decoded. No other view keeps anything of it."""

from __future__ import annotations

import duckdb

from ledger.events.recall import RecallServed
from projections.fold_kit.decisions import Counted
from projections.fold_kit.schema_sql import data_structure
from projections.fold_kit.sql_text import Moment, Sql, insert, text
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.recalls.tables import KEPT

_STRUCTURE = text(data_structure(RecallServed))


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's recalls."""
    if RecallServed in facts:
        bench.run(f"INSERT INTO recall_events SELECT {', '.join(KEPT)} FROM {table_of(RecallServed)}")


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    insert(
        con,
        "recall_events",
        (
            (
                *(c.position, Moment(c.happened_us), Moment(c.stored_us), c.envelope.id, c.org, c.entity_id),
                *(c.envelope.actor, c.trace_id, c.message_id, c.envelope.causationid, c.envelope.correlationid),
                *(c.envelope.traceparent, c.envelope.source),
                Sql(f"from_json({text(c.fact.model_dump_json())}, {_STRUCTURE})"),
            )
            for c in counted
            if isinstance(c.fact, RecallServed)
        ),
    )
