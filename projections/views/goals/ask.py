"""Queries of a goal, with those of its items that the reader may see now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.privacy.sealed import ERASED
from projections.fold_kit.erased import positions_of
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among
from projections.views.access import LISTED, listed, seen_by
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of
from projections.views.knowledge.lives import alive
from projections.views.times import rfc3339

_OF_FOCUS = "owner, description, recall_id, trace_id, message_id, event_id, position"
MAX_MERGES = 16
"""How many merges in a row are followed."""


@dataclass(frozen=True, slots=True)
class Injected:
    """One item that was injected for an agent: its version and its relevance."""

    id: str
    version: int
    relevance: float


@dataclass(frozen=True, slots=True)
class Goal:
    """One focus of a goal. `focuses` and `created_at` are of the goal up to that focus; `erased` is its description."""

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
    erased: bool


def goal(
    cursor: duckdb.DuckDBPyConnection, org: str, owners: Sequence[str], goal_id: str, event_id: str | None = None
) -> Goal | None:
    """The goal with this id of the first of `owners` who has one, as of its last focus or of the focus by an event."""
    rows = named_rows(
        cursor,
        f"""SELECT {_OF_FOCUS}, item_id AS id, item_version AS version, relevance, epoch_us(time) AS time
            FROM goal_focuses WHERE org = ? AND goal_id = ? AND owner IN ({LISTED}) ORDER BY position, rank""",
        [org, goal_id, listed(owners)],
    )
    owner = next((each for each in owners if any(row["owner"] == each for row in rows)), None)
    own = [row for row in rows if row["owner"] == owner]
    matching = [row for row in own if event_id in (None, row["event_id"])]
    if not matching:
        return None
    last = matching[-1]
    position = last["position"]
    items = [row for row in own if row["position"] == position and row["id"] is not None]
    return Goal(
        goal_id=goal_id,
        injected=[Injected(row["id"], row["version"], row["relevance"]) for row in items],
        focuses=len({row["position"] for row in own if row["position"] <= position}),
        created_at=rfc3339(own[0]["time"]),
        focused_at=rfc3339(last["time"]),
        erased=last["description"] == ERASED and bool(positions_of(cursor, [position], "description")),
        **{name: last[name] for name in _OF_FOCUS.split(", ")},
    )


def shown_items(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, goal: Goal
) -> tuple[list[JsonObject], int]:
    """The injected items that the caller sees now, as they are now, in their order then; and how many it does not.

    Left out are items that were retired or erased since, memories that are over, and what the caller may no longer see;
    a merged item is replaced by its survivor. `focused_id` and `focused_version` are those that were injected.
    """
    current = _current_positions(cursor, org, [each.id for each in goal.injected])
    seen, values = seen_by(caller)
    lives = alive(cursor, org, "knowledge", datetime.now(UTC))
    rows = named_rows(
        cursor,
        f"""SELECT {ITEM_COLUMNS} FROM knowledge WHERE version_position IN ({among(current.values())})
            AND org = ? AND status = 'active' AND NOT erased AND {seen} AND {lives}""",
        [org, *values],
    )
    items = {row["version_position"]: item_of(row) for row in rows}
    shown: dict[int, JsonObject] = {}
    for each in goal.injected:
        at = current.get(each.id)
        if at is not None and at in items and at not in shown:  # two items may have been merged into one
            injected = {"relevance": each.relevance, "focused_id": each.id, "focused_version": each.version}
            shown[at] = {**items[at], **injected}
    return list(shown.values()), sum(current.get(each.id) not in items for each in goal.injected)


def _current_positions(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str]) -> dict[str, int]:
    """The version position of each of these items, or of the one it was merged into, if that is active."""
    follows = {item_id: item_id for item_id in ids}
    positions: dict[str, int] = {}
    for _ in range(MAX_MERGES):
        # The narrow table first: versions are then looked up by position, without a scan of texts.
        states = cursor.execute(
            f"SELECT id, status, version_position FROM knowledge_state WHERE org = ? AND id IN ({LISTED})",
            [org, listed(sorted(set(follows.values())))],
        ).fetchall()
        active = {item_id: at for item_id, status, at in states if status == "active"}
        positions |= {first: active[now] for first, now in follows.items() if now in active}
        merged = {item_id: at for item_id, status, at in states if status == "merged"}
        if not merged:
            break
        into = dict(
            cursor.execute(
                f"SELECT id, merged_into FROM knowledge_versions WHERE valid_from IN ({among(merged.values())})"
            ).fetchall()
        )
        follows = {first: into[now] for first, now in follows.items() if now in into}
    return positions
