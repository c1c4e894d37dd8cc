"""Fold of session events: one row for each event; the view has one row for each session."""

from __future__ import annotations

import duckdb

from ledger.events.session import FACTS, SessionClosed, SessionFact, SessionOpened, SessionRemoved, SessionSummarised
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, Value
from projections.fold_kit.workbench import Facts, Workbench, table_of

_ONE_A_SESSION = """
    SELECT org, owner, session_id, arg_max(status, position) AS status,
        min(time) FILTER (change = 'opened') AS opened_at,
        CASE WHEN arg_max(status, position) <> 'open' THEN max(time) FILTER (change = 'closed') END AS closed_at,
        CASE WHEN arg_max(status, position) <> 'open' THEN arg_max(cause, position) FILTER (change = 'closed') END
            AS closed_by,
        max(time) FILTER (change = 'removed') AS removed_at,
        arg_max(messages, position) FILTER (change IN ('closed', 'removed')) AS messages,
        count(*) FILTER (change = 'summarised') AS summaries, sum(cost_usd) AS cost_usd,
        max(time) AS updated_at, max(position) AS position
    FROM session_events {where}
    GROUP BY org, owner, session_id"""

TABLES = f"""
CREATE TABLE session_events (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, org VARCHAR NOT NULL, owner VARCHAR NOT NULL,
    session_id VARCHAR NOT NULL, change VARCHAR NOT NULL, status VARCHAR, cause VARCHAR, messages BIGINT,
    level BIGINT, summary_id VARCHAR, first_message VARCHAR, last_message VARCHAR, model VARCHAR, cost_usd DOUBLE,
    event_id VARCHAR NOT NULL
);
COMMENT ON TABLE session_events IS 'What became of sessions: opened, summarised, closed, removed; not what was said';
COMMENT ON COLUMN session_events.status IS 'What the session is from then on: open, closed, removed; null: as before';
COMMENT ON COLUMN session_events.cause IS
    'Why it was closed (request, idle) or removed (request; expired: after its time, or with the words of its person)';
COMMENT ON COLUMN session_events.messages IS 'Messages of the session; of a summary: those that it stands for';
COMMENT ON COLUMN session_events.level IS '2: a segment was summed up. 3: all up to last_message, in one overview';
COMMENT ON COLUMN session_events.cost_usd IS 'As its owner states it; null where no price is known';
CREATE VIEW sessions AS {_ONE_A_SESSION.format(where="")};
COMMENT ON VIEW sessions IS 'The sessions of each owner: when they were opened and closed, and what summing up cost';
COMMENT ON COLUMN sessions.status IS 'open, closed, or removed: its words are kept no longer';
COMMENT ON COLUMN sessions.messages IS 'How many it had when it was closed or removed last; null before';
CREATE MACRO sessions_at(asked) AS TABLE {_ONE_A_SESSION.format(where="WHERE position <= asked")};
COMMENT ON MACRO TABLE sessions_at IS 'Internal: sessions_as_of, of a position';
"""

# Of each fact: the columns from `change` to `cost_usd`, in SQL.
_COLUMNS: dict[type[SessionFact], str] = {
    SessionOpened: "'opened', 'open', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    SessionSummarised: """'summarised', NULL, NULL, d.messages, d.level, d.summary, d.first, d.last, d.usage.model,
        d.usage.cost_usd""",
    SessionClosed: "'closed', 'closed', d.cause, d.messages, NULL, NULL, NULL, NULL, NULL, NULL",
    SessionRemoved: "'removed', 'removed', d.cause, d.messages, NULL, NULL, NULL, NULL, NULL, NULL",
}


def fold(bench: Workbench, facts: Facts) -> None:
    """Append what the batch says of sessions."""
    for fact, columns in _COLUMNS.items():
        if fact in facts:
            bench.run(f"""
                INSERT INTO session_events
                SELECT position, stream_time, org, d.owner, d.session_id, {columns}, event_id FROM {table_of(fact)}
            """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append what a few events say of sessions."""
    insert(
        con,
        "session_events",
        (
            (
                *(c.position, Moment(c.stored_us), c.org, fact.owner, fact.session_id),
                *_columns(fact),
                c.envelope.id,
            )
            for c in counted
            if isinstance(fact := c.fact, FACTS) and isinstance(fact, SessionFact)
        ),
    )


def _columns(fact: SessionFact) -> tuple[Value, ...]:
    """The columns from `change` to `cost_usd`."""
    nothing = (None,) * 6
    match fact:
        case SessionSummarised():
            about = (fact.messages, fact.level, fact.summary, fact.first, fact.last)
            return "summarised", None, None, *about, fact.usage.model, fact.usage.cost_usd
        case SessionClosed():
            return "closed", "closed", fact.cause, fact.messages, *nothing
        case SessionRemoved():
            return "removed", "removed", fact.cause, fact.messages, *nothing
        case _:
            return "opened", "open", None, None, *nothing
