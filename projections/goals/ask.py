"""What is this goal, and which of its knowledge may its reader see now?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from ledger.event import JsonObject
from ledger.scopes import Caller
from ledger.sealed import ERASED
from projections.knowledge.ask import ITEM_COLUMNS, LISTED, item_of, listed, rfc3339, seen_by
from projections.sql_text import among


@dataclass(frozen=True, slots=True)
class Injected:
    """One item as it was put before the agent: which version, and how relevant it was."""

    id: str
    version: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Goal:
    """One focus of a goal. `focuses` and `created_at` are of the goal up to that focus."""

    goal_id: str
    owner: str
    description: str
    injected: list[Injected]
    recall_id: str | None
    trace_id: str | None
    message_id: str | None
    event_id: str
    position: int
    focuses: int
    created_at: str
    focused_at: str


def goal(
    cursor: duckdb.DuckDBPyConnection, org: str, owners: Sequence[str], goal_id: str, event_id: str | None = None
) -> Goal | None:
    """The goal of the first of `owners` who has one of this id, as it was focused last, or by that event."""
    rows = cursor.execute(
        f"""SELECT owner, description, item_id, item_version, relevance, recall_id, trace_id, message_id, event_id,
                position, epoch_us(time) FROM goal_focuses
            WHERE org = ? AND goal_id = ? AND owner IN ({LISTED}) ORDER BY position, rank""",
        [org, goal_id, listed(owners)],
    ).fetchall()
    owner = next((each for each in owners if any(row[0] == each for row in rows)), None)
    own = [row for row in rows if row[0] == owner]
    stated = [row for row in own if event_id in (None, row[8])]
    if not stated:
        return None
    last = stated[-1]
    position = last[9]
    return Goal(
        goal_id=goal_id,
        owner=last[0],
        description=last[1],
        injected=[Injected(*row[2:5]) for row in own if row[9] == position and row[2] is not None],
        recall_id=last[5],
        trace_id=last[6],
        message_id=last[7],
        event_id=last[8],
        position=position,
        focuses=len({row[9] for row in own if row[9] <= position}),
        created_at=rfc3339(own[0][10]),
        focused_at=rfc3339(last[10]),
    )


def shown_items(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, goal: Goal) -> list[JsonObject]:
    """What was injected and the caller sees now, as it is now, in the order of relevance then.

    What was closed, retired or erased since is left out; `focused_version` is the version that was injected.
    """
    seen, values = seen_by(caller)
    holding = cursor.execute(  # narrow first: versions are then found by their positions, not by a scan of texts
        f"SELECT version_position FROM knowledge_state WHERE org = ? AND id IN ({LISTED}) AND status = 'active'",
        [org, listed([each.id for each in goal.injected])],
    ).fetchall()
    rows = cursor.execute(
        f"""SELECT {ITEM_COLUMNS} FROM knowledge WHERE version_position IN ({among(at for (at,) in holding)})
            AND org = ? AND status = 'active' AND {seen}""",
        [org, *values],
    ).fetchall()
    # Judged here: DuckDB would compare the texts of every item in the view.
    found = {row[0]: item_of(row) for row in rows if row[2] != ERASED}
    return [
        {**found[each.id], "relevance": each.relevance, "focused_version": each.version}
        for each in goal.injected
        if each.id in found
    ]
