"""What was not folded, and why? One row an event, with its raw body for an operator to read."""

from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import orjson
import pyarrow as pa

from ledger.event import StoredEvent
from projections.decode import Refusal

TABLES = """
CREATE TABLE refused_events (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, subject VARCHAR NOT NULL, event_id VARCHAR,
    type VARCHAR, code VARCHAR NOT NULL, reason VARCHAR NOT NULL, body VARCHAR NOT NULL
);
COMMENT ON TABLE refused_events IS 'Events that are in the log and do not count, each with its reason';
COMMENT ON COLUMN refused_events.time IS 'When the log kept it';
COMMENT ON COLUMN refused_events.code IS 'Stable error code, as the doors use it';
COMMENT ON COLUMN refused_events.body IS 'The event as it was published (bytes that are no text are shown as \\xNN)';
"""

_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("subject", pa.string()),
        ("event_id", pa.string()),
        ("type", pa.string()),
        ("code", pa.string()),
        ("reason", pa.string()),
        ("body", pa.string()),
    ]
)


def fold(con: duckdb.DuckDBPyConnection, refusals: list[Refusal]) -> None:
    """Keep each refused event with its reason."""
    if not refusals:
        return
    rows = [_row(refusal.event, refusal.code, refusal.reason) for refusal in refusals]
    con.register("refusals", pa.Table.from_pylist(rows, schema=_SCHEMA))
    con.execute("INSERT INTO refused_events FROM refusals ORDER BY position")
    con.unregister("refusals")


def _row(event: StoredEvent, code: str, reason: str) -> dict[str, object]:
    try:
        document = orjson.loads(event.body)
    except orjson.JSONDecodeError:
        document = None
    named = document if isinstance(document, dict) else {}
    return {
        "position": event.position,
        "time": datetime.fromtimestamp(event.stored_ns // 1000 / 1e6, UTC),
        "subject": event.subject,
        "event_id": named.get("id") if isinstance(named.get("id"), str) else None,
        "type": named.get("type") if isinstance(named.get("type"), str) else None,
        "code": code,
        "reason": reason,
        "body": event.body.decode(errors="backslashreplace"),
    }
