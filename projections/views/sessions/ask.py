"""Queries of sessions: one of an owner's, and pages of a caller's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from kledger.contract.words import SessionStatus
from projections.views.access import LISTED, listed
from projections.views.times import rfc3339

_COLUMNS = """owner, session_id, status, epoch_us(opened_at), epoch_us(closed_at), closed_by, messages, summaries,
    position, epoch_us(updated_at)"""


@dataclass(frozen=True, slots=True)
class Session:
    """What the log knows of one session; `messages` as of when it was closed or removed last."""

    owner: str
    session_id: str
    status: SessionStatus
    opened_at: str
    closed_at: str | None
    closed_by: str | None
    messages: int | None
    summaries: int
    position: int
    updated_us: int


def session(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, session_id: str) -> Session | None:
    """The session of an owner with this id."""
    row = cursor.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE org = ? AND owner = ? AND session_id = ?", [org, owner, session_id]
    ).fetchone()
    return None if row is None else _session(row)


def sessions(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    owners: Sequence[str] | None,
    statuses: Sequence[str],
    limit: int,
    offset: int,
) -> tuple[list[Session], int]:
    """A page of the sessions of these owners (None: of all) with any of these statuses, the last changed first; and
    their number."""
    whose = "TRUE" if owners is None else f"owner IN ({LISTED})"
    where = f"org = ? AND {whose} AND status IN ({LISTED})"
    values = [org, *([] if owners is None else [listed(owners)]), listed(statuses)]
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} ORDER BY position DESC LIMIT {limit} OFFSET {offset}", values
    ).fetchall()
    (total,) = cursor.execute(f"SELECT count(*) FROM sessions WHERE {where}", values).fetchone() or (0,)
    return [_session(row) for row in rows], total


def owners_of_id(cursor: duckdb.DuckDBPyConnection, org: str, session_id: str) -> list[str]:
    """Who has a session with this id, the last changed first: ten at most."""
    rows = cursor.execute(
        "SELECT owner FROM sessions WHERE org = ? AND session_id = ? ORDER BY position DESC LIMIT 10", [org, session_id]
    ).fetchall()
    return [owner for (owner,) in rows]


def not_removed(
    cursor: duckdb.DuckDBPyConnection, org: str, status: SessionStatus, after: int, limit: int
) -> list[Session]:
    """Sessions of all owners that have this status, in the order of their last event, from after a position on."""
    rows = cursor.execute(
        f"SELECT {_COLUMNS} FROM sessions WHERE org = ? AND status = ? AND position > ? ORDER BY position LIMIT ?",
        [org, status, after, limit],
    ).fetchall()
    return [_session(row) for row in rows]


def _session(row: Sequence[Any]) -> Session:
    owner, session_id, status, opened_us, closed_us, closed_by, messages, summaries, position, updated_us = row
    return Session(
        owner,
        session_id,
        status,
        rfc3339(opened_us),
        None if closed_us is None else rfc3339(closed_us),
        closed_by,
        messages,
        summaries,
        position,
        updated_us,
    )
