"""Fold of refused events: one row each, with the raw body for an operator to read."""

from __future__ import annotations

import duckdb
import orjson
import pyarrow as pa

from ledger.event import StoredEvent
from projections.fold_kit.decisions import Refusal
from projections.fold_kit.sql_text import ALL_DIFFERENT
from projections.views.refused.shown import body_of

TABLES = f"""
CREATE TABLE refused_events (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, subject VARCHAR NOT NULL, event_id VARCHAR,
    type VARCHAR, code VARCHAR NOT NULL, reason VARCHAR NOT NULL, body VARCHAR {ALL_DIFFERENT} NOT NULL
);
COMMENT ON TABLE refused_events IS 'Events that are in the log and do not count, each with its reason';
COMMENT ON COLUMN refused_events.time IS 'When the log kept it';
COMMENT ON COLUMN refused_events.code IS 'Stable error code, as the doors use it';
COMMENT ON COLUMN refused_events.body IS 'As it was published, without secrets (bytes that are no text: as \\xNN)';
"""


_ROW = {
    "position": pa.int64(),
    "stored_us": pa.int64(),
    **dict.fromkeys(("subject", "event_id", "type", "code", "reason", "body"), pa.large_string()),
}


def fold(con: duckdb.DuckDBPyConnection, refusals: list[Refusal]) -> None:
    """Insert each refused event with its reason."""
    if not refusals:
        return
    columns = zip(*(_row(refusal.event, refusal.code, refusal.reason) for refusal in refusals), strict=True)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, _ROW.values(), strict=True)]
    con.register("refused", pa.table(arrays, names=list(_ROW)))
    con.execute("INSERT INTO refused_events SELECT * REPLACE (make_timestamptz(stored_us) AS stored_us) FROM refused")
    con.unregister("refused")


def _row(event: StoredEvent, code: str, reason: str) -> list[object]:
    try:
        document = orjson.loads(event.body)
    except orjson.JSONDecodeError:
        document = None
    named = document if isinstance(document, dict) else {}
    event_id, kind = named.get("id"), named.get("type")
    return [
        event.position,
        event.stored_ns // 1000,
        event.subject,
        event_id if isinstance(event_id, str) else None,
        kind if isinstance(kind, str) else None,
        code,
        reason,
        body_of(event, document),
    ]
