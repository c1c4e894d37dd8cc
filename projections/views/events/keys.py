"""Fold of accepted events into `event_keys`, the index that finds repeated ids.

It is the gate's own: the next batch may be judged before `events` has the rows of this one
(projections/fold_kit/workbench.py:Workbench.open_lanes).
"""

from __future__ import annotations

import hashlib

import duckdb

from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import ALL_DIFFERENT
from projections.fold_kit.workbench import Facts, Workbench

TABLES = f"""
CREATE TABLE event_keys (key UBIGINT {ALL_DIFFERENT} NOT NULL, position BIGINT NOT NULL);
COMMENT ON TABLE event_keys IS 'Internal: a short key of each accepted event id, to notice repeated ones fast';
"""


def fold(bench: Workbench, _facts: Facts) -> None:
    """Append the keys of the accepted events of the batch."""
    bench.run("INSERT INTO event_keys SELECT key, position FROM accepted")


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append the keys of a few accepted events."""
    insert(con, "event_keys", ((key_of(c.envelope.id), c.position) for c in counted))


def key_of(event_id: str) -> int:
    """DuckDB's md5_number_lower of an event id."""
    return int.from_bytes(hashlib.md5(event_id.encode(), usedforsecurity=False).digest()[8:], "little")
