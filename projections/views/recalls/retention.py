"""Retention of the detail of recalls: after some days, only what is counted stays in the views.

A view file states for how many days it keeps the detail (`recall_retention`), null for all. What is past follows from
the log alone: a fold looks at no clock, but at the latest time at which the log kept an event, as far as it is folded.
Days are whole ones in UTC, so that mostly nothing is to be done. The log keeps every recall as it was.
"""

from __future__ import annotations

import duckdb

from kledger.contract.errors import InvalidPayload
from ledger.events.recall import RecallServed
from ledger.privacy.sealed import ERASED, USER
from projections.fold_kit.envelopes import data_as_json
from projections.fold_kit.sql_text import text
from projections.fold_kit.workbench import Workbench

DAY_US = 86_400_000_000
MOST_DAYS = 36_500

_BYTES = f"strlen(({data_as_json(RecallServed)})::VARCHAR)"


def checked_days(days: int | None) -> int | None:
    """A number of days that a file may state. Raises InvalidPayload."""
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise InvalidPayload(f"the detail of recalls is kept for 1 to {MOST_DAYS:,} days, not for {days}", errors=[])
    return days


def begin(con: duckdb.DuckDBPyConnection, days: int | None) -> None:
    """State the retention of a new file."""
    con.execute("INSERT INTO recall_retention VALUES (?, 'epoch')", [checked_days(days)])


def fold(bench: Workbench, earliest_ns: int, latest_ns: int) -> None:
    """Reduce the recalls that are past their retention once the last folded events, stored between these, are there."""
    days = bench.recall_days
    if days is None:
        return
    ((before,),) = bench.rows("SELECT epoch_us(before) FROM recall_retention")
    due = max(before, (latest_ns // 1000 // DAY_US - days) * DAY_US)
    if due > before or earliest_ns // 1000 < before:  # the broker's clock may have gone back
        moment = f"make_timestamptz({due})"
        bench.run(_moving(moment))
        bench.run(f"UPDATE recall_retention SET before = {moment}")


def _moving(before: str) -> str:
    """Statements that reduce the recalls of before a moment.

    `said` is the digest of what a person asked: a forgetting finds by it the embedding that was kept of those words.
    `bytes` are those of the event's data, which the view `events` no longer has.
    """
    return f"""
INSERT INTO recall_remains
SELECT position, time, stream_time, org, actor, trace_id, d.kind, list_transform(d.items, lambda x: x.id),
    md5_number_lower(entity_id),
    CASE WHEN starts_with(actor, {text(USER)}) AND d.query <> {text(ERASED)} THEN unhex(sha256(d.query)) END, {_BYTES}
FROM recall_events WHERE stream_time < {before};
DELETE FROM packed_recalls WHERE stream_time < {before};
DELETE FROM waiting_recalls WHERE stream_time < {before}
"""
