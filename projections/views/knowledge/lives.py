"""Lives of short memories: the recalls that count for each, and the moment at which it is out of recall.

A short memory lives for its lifetime from its last change or counted recall on. A fold looks at no clock: it keeps the
recalls, and whoever reads compares the end with the moment asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from kledger.contract.memory import PROMOTING_RECALLS
from projections.fold_kit.sql_text import among
from projections.views.times import timestamp

TABLES = """
CREATE TABLE memory_recalls (
    position BIGINT NOT NULL, org VARCHAR NOT NULL, item_id VARCHAR NOT NULL, time TIMESTAMPTZ NOT NULL,
    counted_as VARCHAR NOT NULL
);
COMMENT ON TABLE memory_recalls IS 'Recalls that renewed a short memory: it was alive, and served to a reader of it';
COMMENT ON COLUMN memory_recalls.position IS 'Position of the recall';
COMMENT ON COLUMN memory_recalls.counted_as IS 'Its trace, else its session, else itself: three of them promote';
"""


def _lives(versions: str, recalls: str, began: str = "v.valid_from_time", beside: str = "") -> str:
    return f"""
    SELECT v.org, v.id, v.valid_from AS version_position, v.status, v.lifetime,
        greatest(any_value({began}), max(r.time)) + to_seconds(v.lifetime) AS expires_at,
        count(DISTINCT r.counted_as) AS recalls
    FROM (FROM knowledge_versions WHERE layer = 'short' AND {versions}) v
    LEFT JOIN (FROM memory_recalls {recalls}) r ON r.org = v.org AND r.item_id = v.id {beside}
    GROUP BY v.org, v.id, v.valid_from, v.status, v.lifetime"""


def _all_lives(versions: str, recalls: str, before: str) -> str:
    """The lives also of what is over or retired: that is a version too, and no life began anew with it."""
    last = f"""LEFT JOIN (
        SELECT org, id, arg_max(valid_from_time, valid_from) AS began FROM knowledge_versions
        WHERE layer = 'short' AND status IN ('active', 'proposed') AND {before} GROUP BY org, id
    ) l ON l.org = v.org AND l.id = v.id"""
    return _lives(versions, recalls, "coalesce(l.began, v.valid_from_time)", last)


_NOW = "valid_to IS NULL"


def _then(position: str) -> tuple[str, str]:
    """Which versions stood at a position, and which recalls had been served (SQL)."""
    standing = f"valid_from <= {position} AND (valid_to IS NULL OR valid_to > {position})"
    return standing, f"WHERE position <= {position}"


def _active(as_of: int | None = None) -> str:
    """`short_memories`, now or of a position, of the active ones: their own version began their life, so that no other
    has to be looked for, which takes as much time again."""
    standing, served = (_NOW, "") if as_of is None else _then(str(int(as_of)))
    lives = _lives(f"{standing} AND status = 'active'", served)
    return f"({lives})"


VIEWS = f"""
CREATE VIEW short_memories AS {_all_lives(_NOW, "", "TRUE")};
COMMENT ON VIEW short_memories IS 'When each short memory is out of recall, and how many recalls count for it';
COMMENT ON COLUMN short_memories.expires_at IS 'Its lifetime after its last change or counted recall while it lived';
COMMENT ON COLUMN short_memories.recalls IS 'Different traces, sessions or recalls that served it; three promote it';
CREATE MACRO short_memories_at(asked) AS TABLE {_all_lives(*_then("asked"), "valid_from <= asked")};
COMMENT ON MACRO TABLE short_memories_at IS 'Internal: short_memories, of a position';
"""


def alive(cursor: duckdb.DuckDBPyConnection, org: str, item: str, moment: datetime, as_of: int | None = None) -> str:
    """The predicate of items that are not over at a moment, as of a position if one is given.

    Mostly none is over that the node has not stated, and the query of the items then has nothing to compare: a join
    with the lives made a list of 30,000 items take twice its time.
    """
    if not has_short(cursor):
        return "TRUE"
    over = cursor.execute(
        f"""SELECT id FROM {_active(as_of)} WHERE org = ?
            AND expires_at <= {timestamp(moment)}""",
        [org],
    ).fetchall()
    return f"{item}.id NOT IN ({among(item_id for (item_id,) in over)})" if over else "TRUE"


def has_short(cursor: duckdb.DuckDBPyConnection) -> bool:
    """Whether there is, or was, any short memory."""
    return cursor.execute("SELECT 1 FROM knowledge_versions WHERE layer = 'short' LIMIT 1").fetchone() is not None


@dataclass(frozen=True, slots=True)
class Due:
    """A short memory that is to be promoted, or is over: its lifetime and end in seconds (the end since 1970), and the
    state of the log that says so."""

    id: str
    lifetime: int
    ends: float
    version_position: int
    recalls: int
    promoted: bool


def due(cursor: duckdb.DuckDBPyConnection, org: str, moment: datetime, most: int) -> tuple[list[Due], datetime | None]:
    """Up to `most` active short memories that were recalled often enough, or are over at a moment; and when the next
    one will be over, None where none is alive."""
    if not has_short(cursor):  # the questions below take 10 ms, which a node that is saved to asks each second
        return [], None
    at = timestamp(moment)
    rows = cursor.execute(
        f"""SELECT id, lifetime, epoch_us(expires_at) / 1e6, version_position, recalls, recalls >= {PROMOTING_RECALLS}
            FROM {_active()}
            WHERE org = ? AND (recalls >= {PROMOTING_RECALLS} OR expires_at <= {at})
            ORDER BY expires_at, id LIMIT {int(most)}""",
        [org],
    ).fetchall()
    return [Due(*row) for row in rows], next_end(cursor, org, moment)


def next_end(cursor: duckdb.DuckDBPyConnection, org: str, moment: datetime) -> datetime | None:
    """When the next short memory is over, after a moment; None where none is alive."""
    if not has_short(cursor):  # mostly, and the question below takes longer
        return None
    ((ends,),) = cursor.execute(
        f"""SELECT epoch_us(min(expires_at)) FROM {_active()}
            WHERE org = ? AND expires_at > {timestamp(moment)}""",
        [org],
    ).fetchall()
    return None if ends is None else datetime.fromtimestamp(ends / 1e6, UTC)


def over_among(
    cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str], moment: datetime, as_of: int | None = None
) -> set[str]:
    """Those of these items that are active short memories and over at a moment, as of a position if one is given."""
    at = timestamp(moment)
    rows = cursor.execute(
        f"SELECT id FROM {_active(as_of)} WHERE org = ? AND id IN ({among(ids)}) AND expires_at <= {at}", [org]
    ).fetchall()
    return {item_id for (item_id,) in rows}
