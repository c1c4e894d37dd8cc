"""Queries of processes: the stage of an evolution, extraction, slim, conflict or held statement, and what each said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import duckdb
import orjson

from ledger.event import JsonObject
from projections.fold_kit.page import Measured, fitting_rows
from projections.fold_kit.sql_text import among_numbers
from projections.views.access import LISTED, listed
from projections.views.times import rfc3339

_NAMES = (
    *(("requested", "'item_id'"), ("held", "'item_id'")),
    *(("recorded", "'first'"), ("recorded", "'second'")),
)
"""The stages and fields in which a process names its items."""
_COLUMNS = """p.kind, p.id, p.owner, p.stage, p.outcome, p.said::VARCHAR, p.requested_event, p.requested_position,
    epoch_us(p.requested_at), p.position, epoch_us(p.updated_at)"""

_MEASURED = Measured("processes AS p", "strlen(p.said::VARCHAR)", "p.requested_position")


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `said` has the data of each stage by its name; moments are microseconds since 1970 UTC."""

    kind: str
    id: str
    owner: str
    stage: str
    outcome: str | None
    said: JsonObject
    requested_event: str
    requested_position: int
    requested_us: int
    position: int
    updated_us: int
    trace_id: str | None = None
    message_id: str | None = None

    @property
    def status(self) -> str:
        """The outcome, which an event of its item sets, else its last stage."""
        return self.outcome or self.stage

    @property
    def requested(self) -> JsonObject:
        """The data of its first stage."""
        first: JsonObject = next(iter(self.said.values()), {})
        return first

    def shown(self) -> JsonObject:
        """The JSON fields that are common to all processes."""
        return {
            "id": self.id,
            "status": self.status,
            "owner": self.owner,
            "requested_at": rfc3339(self.requested_us),
            "updated_at": rfc3339(self.updated_us),
            "position": self.position,
        }


@dataclass(frozen=True, slots=True)
class Page:
    """Which processes: those of a status, those about an item, and which page of them."""

    status: str | None = None
    item_id: str | None = None
    limit: int = 20
    offset: int = 0


def process(cursor: duckdb.DuckDBPyConnection, org: str, kind: str, process_id: str) -> Process | None:
    """One process with the trace and message of its request; None when its request does not count."""
    row = cursor.execute(
        f"""SELECT {_COLUMNS}, e.trace_id, e.message_id
            FROM processes AS p LEFT JOIN other_events AS e ON e.position = p.requested_position
            WHERE p.org = ? AND p.kind = ? AND p.id = ?""",
        [org, kind, process_id],
    ).fetchone()
    return None if row is None else _process(row)


def processes(
    cursor: duckdb.DuckDBPyConnection, org: str, kind: str, owners: Sequence[str] | None, page: Page
) -> tuple[list[Process], int]:
    """A page of the processes of these owners (None: of all), newest first, and the total.

    The page ends early where they are more than fit into an answer.
    """
    where, values = ["p.org = ?", "p.kind = ?"], [org, kind]
    if owners is not None:
        where.append(f"p.owner IN ({LISTED})")
        values.append(listed(owners))
    if page.status is not None:
        where.append("coalesce(p.outcome, p.stage) = ?")
        values.append(page.status)
    if page.item_id is not None:
        where.append("(" + " OR ".join(f"(p.said->'{stage}'->>{field}) = ?" for stage, field in _NAMES) + ")")
        values += [page.item_id] * len(_NAMES)
    matching = f"FROM processes AS p WHERE {' AND '.join(where)}"
    found = cursor.execute(
        f"""SELECT p.requested_position {matching}
            ORDER BY p.requested_position DESC LIMIT {int(page.limit)} OFFSET {int(page.offset)}""",
        values,
    ).fetchall()
    at = among_numbers("p.requested_position", fitting_rows(cursor, _MEASURED, [position for (position,) in found]))
    rows = cursor.execute(
        f"SELECT {_COLUMNS} {matching} AND {at} ORDER BY p.requested_position DESC", values
    ).fetchall()
    counted = cursor.execute(f"SELECT count(*) {matching}", values).fetchone()
    return [_process(row) for row in rows], int(counted[0]) if counted else 0


def spent_since(cursor: duckdb.DuckDBPyConnection, moment: datetime) -> float:
    """The cost of models since then in US dollars, by the records of nodes only, as other publishers could forge it.

    What is dated two days later or more is left out: a broker whose clock was ahead for a while dated it, and it would
    count as every day's until then. A day is left for a node whose own clock is behind the broker's.
    """
    row = cursor.execute(
        "SELECT coalesce(sum(cost_usd), 0) FROM model_usage WHERE stated_by = 'node' AND time >= ? AND time < ?",
        [moment, moment + timedelta(days=2)],
    ).fetchone()
    return float(row[0]) if row else 0.0


def _process(row: Sequence[Any]) -> Process:
    return Process(*[*row[:5], orjson.loads(row[5]), *row[6:]])
