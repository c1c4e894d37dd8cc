"""Fold of tombstones: a row for each statement that a person retired with a reason, or corrected.

A row names the version that said it and holds no words, so that an erasure leaves nothing here. What expired, was
cleaned, merged or superseded leaves none, nor does what a model rewrote, or a decision on a conflict that says both.
"""

from __future__ import annotations

from collections.abc import Iterable

import duckdb
import pyarrow as pa

from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired, KnowledgeRevised
from ledger.privacy.sealed import USER
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Moment, Value, among, literal, rows_with, text
from projections.fold_kit.workbench import Facts, Workbench, table_of

TABLES = """
CREATE TABLE tombstones (
    org VARCHAR NOT NULL, item_id VARCHAR NOT NULL, cause VARCHAR NOT NULL, stated BIGINT NOT NULL,
    actor VARCHAR NOT NULL, position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE tombstones IS 'What a person retired with a reason, or corrected: said again, it is held';
COMMENT ON COLUMN tombstones.cause IS 'retired or corrected';
COMMENT ON COLUMN tombstones.stated IS 'valid_from of the version in knowledge_versions that said it';
COMMENT ON COLUMN tombstones.actor IS 'Who retired or corrected it';
COMMENT ON COLUMN tombstones.position IS 'Log position of the event that retired or corrected it';
"""

_PERSON = f"starts_with(actor, {text(USER)})"
_VERSIONS = "knowledge_versions"
_CLEANED = "expired"  # the reason that cleaning states, of short memories (producers/operations/memory/health.py)
_OF_A_MODEL = "('extraction', 'conflict')"
_CAUSED = f"e.event_id = s.causation_id AND e.org = s.org AND e.position < s.position AND e.entity IN {_OF_A_MODEL}"
# The rows of `s` have _NAMES; `of_a_model` has the positions of those that a model caused. That is looked for by joins
# of these few rows: a condition on each would join all keys with all events first.
_APPEND = f"""
INSERT INTO tombstones
WITH s AS ({{rows}}), of_a_model AS ({{of_a_model}})
SELECT s.org, s.item_id, s.cause, s.stated, s.actor, s.position, make_timestamptz(s.stored_us)
FROM s
JOIN {{versions}} AS before ON before.valid_from = s.stated
WHERE CASE s.cause
    WHEN 'retired' THEN before.status <> 'expired'
        AND NOT (coalesce(before.layer, '') = 'short' AND s.reason = {text(_CLEANED)})
    ELSE s.content <> before.content AND s.position NOT IN (SELECT position FROM of_a_model) END
"""
_OF_A_MODEL_BY_KEY = f"""
    SELECT s.position FROM s
    JOIN event_keys AS k ON k.key = md5_number_lower(s.causation_id)
    JOIN other_events AS e ON e.position = k.position
    WHERE {_CAUSED}"""
# The lane of the events has no keys, but those of the batch, as it comes before the lane of this fold.
_OF_A_MODEL_BY_ID = f"""
SELECT s.position FROM caused AS s
JOIN {rows_with("other_events", "event_id", "SELECT causation_id FROM caused")} AS e ON e.event_id = s.causation_id
WHERE {_CAUSED}"""
_BY_A_MODEL = pa.schema([("position", pa.int64())])
_LIFT = """
DELETE FROM tombstones USING ({rows}) AS s
WHERE tombstones.cause = 'retired' AND tombstones.org = s.org AND tombstones.item_id = s.item_id
    AND tombstones.position < s.position
"""
_NAMES = ("org", "item_id", "cause", "stated", "actor", "position", "stored_us", "reason", "content", "causation_id")


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the tombstones of a batch, and lift those of what it restores."""
    for fact, cause, content, condition in (
        (KnowledgeRetired, "retired", "NULL", "d.reason <> ''"),
        (KnowledgeRevised, "corrected", "d.content", "d.content IS NOT NULL"),
    ):
        if fact in facts and pc.any(pc.starts_with(bench.presented(table_of(fact))["actor"], USER)).as_py():
            rows = f"""SELECT org, entity_id AS item_id, '{cause}' AS cause, closes AS stated, actor, position,
                    stored_us, d.reason AS reason, {content} AS content, causation_id
                FROM {table_of(fact)} WHERE {_PERSON} AND {condition}"""
            bench.present({"by_a_model": _of_a_model(bench, bench.presented(table_of(fact)))})
            versions = bench.few_of(_VERSIONS, "valid_from", "SELECT stated FROM s")
            bench.run(_APPEND.format(rows=rows, of_a_model="FROM by_a_model", versions=versions))
    if KnowledgeRestored in facts:
        restored = f"SELECT org, entity_id AS item_id, position FROM {table_of(KnowledgeRestored)}"
        bench.run(_LIFT.format(rows=restored))


def _of_a_model(bench: Workbench, events: pa.Table) -> pa.Table:
    """The positions of those events of persons that a model caused."""
    caused = events.select(("org", "position", "causation_id", "actor"))
    caused = caused.filter(pc.and_(pc.is_valid(caused["causation_id"]), pc.starts_with(caused["actor"], USER)))
    positions = [at for (at,) in bench.rows_of_lane("log", _OF_A_MODEL_BY_ID, caused=caused)] if len(caused) else []
    return pa.table([positions], schema=_BY_A_MODEL)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append the tombstones of a few events."""
    rows = [(c, row) for c in counted if (row := _row(c)) is not None]
    caused = [row for c, row in rows if c.envelope.causationid is not None]
    if caused:
        con.execute(_APPEND.format(rows=_values(caused, _NAMES), of_a_model=_OF_A_MODEL_BY_KEY, versions=_VERSIONS))
    if len(caused) < len(rows):
        _append(con, [(c, row) for c, row in rows if c.envelope.causationid is None])
    restored = [(c.org, c.entity_id, c.position) for c in counted if isinstance(c.fact, KnowledgeRestored)]
    if restored:
        con.execute(_LIFT.format(rows=_values(restored, ("org", "item_id", "position"))))


def _append(con: duckdb.DuckDBPyConnection, rows: list[tuple[Counted, tuple[Value, ...]]]) -> None:
    """_APPEND for events that nothing caused: with the versions before in hand, no join is needed."""
    before = {
        at: (status, layer, content)
        for at, status, layer, content in con.execute(
            "SELECT valid_from, status, layer, content FROM knowledge_versions "
            f"WHERE valid_from IN ({among(c.closes for c, _ in rows if c.closes is not None)})"
        ).fetchall()
    }
    left = []
    for c, (*named, _stored_us, _reason, _content, _caused) in rows:
        if c.closes not in before:
            continue
        status, layer, content = before[c.closes]
        match c.fact:
            case KnowledgeRetired(reason=reason):
                stays = status != "expired" and not (layer == "short" and reason == _CLEANED)
            case KnowledgeRevised(content=now):
                stays = now != content
            case _:
                stays = False
        if stays:
            left.append((*named, Moment(c.stored_us)))
    insert(con, "tombstones", left)


def _row(c: Counted) -> tuple[Value, ...] | None:
    if not c.envelope.actor.startswith(USER):
        return None
    content: str | None
    match c.fact:
        case KnowledgeRetired(reason=str(reason)) if reason:
            cause, content = "retired", None
        case KnowledgeRevised(content=str(now), reason=reason):
            cause, content = "corrected", now
        case _:
            return None
    by = c.envelope.actor
    return c.org, c.entity_id, cause, c.closes, by, c.position, c.stored_us, reason, content, c.envelope.causationid


def _values(rows: Iterable[tuple[Value, ...]], names: tuple[str, ...]) -> str:
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"SELECT * FROM (VALUES {values}) AS v({', '.join(names)})"
