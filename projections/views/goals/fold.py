"""Fold of goal events: one row for each item injected, each time a goal is focused."""

from __future__ import annotations

import duckdb

from ledger.events.goal import GoalFocused
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.recalls.ranked import EACH_ITEM, RANKED_COLUMNS, ranked

_ONE_A_GOAL = """
    SELECT org, owner, goal_id, any_value(description) AS description,
        coalesce(list(item_id ORDER BY rank) FILTER (item_id IS NOT NULL), []) AS items,
        any_value(recall_id) AS recall_id, any_value(focuses) AS focuses, any_value(created_at) AS created_at,
        any_value(time) AS updated_at, position
    FROM (
        SELECT *, max(position) OVER g AS latest, min(time) OVER g AS created_at,
            count(*) FILTER (coalesce(rank, 1) = 1) OVER g AS focuses
        FROM goal_focuses {where}
        WINDOW g AS (PARTITION BY org, owner, goal_id)
    ) WHERE position = latest GROUP BY org, owner, goal_id, position"""

TABLES = f"""
CREATE TABLE goal_focuses (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, org VARCHAR NOT NULL, owner VARCHAR NOT NULL,
    goal_id VARCHAR NOT NULL, description VARCHAR NOT NULL, rank INTEGER, item_id VARCHAR, item_version BIGINT,
    relevance DOUBLE, recall_id VARCHAR, trace_id VARCHAR, message_id VARCHAR, event_id VARCHAR NOT NULL
);
COMMENT ON TABLE goal_focuses IS
    'Items injected when goals were focused; a focus that found none has one row without an item';
COMMENT ON COLUMN goal_focuses.rank IS '1 is the best';
COMMENT ON COLUMN goal_focuses.item_version IS 'The version that was injected';
CREATE VIEW goals AS {_ONE_A_GOAL.format(where="")};
COMMENT ON VIEW goals IS 'The goals of each owner as they were focused last; items are ids, best first';
CREATE MACRO goals_at(asked) AS TABLE {_ONE_A_GOAL.format(where="WHERE position <= asked")};
COMMENT ON MACRO TABLE goals_at IS 'Internal: goals_as_of, of a position';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append what the batch's focuses injected."""
    if GoalFocused not in facts:
        return
    bench.run(f"""
        INSERT INTO goal_focuses
        SELECT position, stream_time, org, d.owner, d.goal_id, d.description, {RANKED_COLUMNS},
            d.recall, trace_id, message_id, event_id
        FROM {table_of(GoalFocused)}
        {EACH_ITEM}
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append what a few focuses injected."""
    insert(
        con,
        "goal_focuses",
        (
            (
                *(c.position, Moment(c.stored_us), c.org, fact.owner, fact.goal_id, fact.description),
                *item,
                *(fact.recall, c.trace_id, c.message_id, c.envelope.id),
            )
            for c in counted
            if isinstance(fact := c.fact, GoalFocused)
            for item in ranked(fact.items)
        ),
    )
