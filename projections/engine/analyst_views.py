"""Views and macros for analysts, over the tables; they store nothing.

The macros `…_as_of` and `changes_between` take a log position or a time. The program itself uses `…_at`, which take a
position only and need no lookup of the log's times.
"""

from __future__ import annotations

from projections.fold_kit.recalls import counts
from projections.views.knowledge import memory_health

_AS_OF = {
    "knowledge": "The view knowledge as it was at a log position or a time",
    "memory_items": "The view memory_items as it was at a log position or a time",
    "profiles": "The profiles as they were at a log position or a time",
    "resources": "The view resources as it was at a log position or a time; expired is as of now",
    "documents": "The view documents as it was at a log position or a time",
    "goals": "The goals as they were at a log position or a time",
    "sessions": "The sessions as they were at a log position or a time",
}

TABLES = (
    """
CREATE MACRO position_of(moment) AS CASE
    WHEN moment IS NULL THEN error('NULL is neither a log position nor a time')
    WHEN regexp_full_match(moment::VARCHAR, '[0-9]{1,18}')
        AND TRY_CAST(moment::VARCHAR AS BIGINT) > (SELECT max(position) FROM checkpoints)
        THEN error('position ' || moment::VARCHAR || ' is beyond the last position that is folded, which is '
            || (SELECT max(position) FROM checkpoints)::VARCHAR)
    WHEN regexp_full_match(moment::VARCHAR, '[0-9]{1,18}') THEN TRY_CAST(moment::VARCHAR AS BIGINT)
    WHEN TRY_CAST(moment::VARCHAR AS TIMESTAMPTZ) IS NULL
        THEN error('neither a log position nor a time: ' || moment::VARCHAR)
    WHEN TRY_CAST(moment::VARCHAR AS TIMESTAMPTZ) > now()
        AND TRY_CAST(moment::VARCHAR AS TIMESTAMPTZ) > (SELECT coalesce(max(stream_time), now()) FROM events)
        THEN error(moment::VARCHAR || ' is yet to come: ask as of now() at the latest')
    ELSE coalesce(
        (SELECT min(position) - 1 FROM events WHERE stream_time > TRY_CAST(moment::VARCHAR AS TIMESTAMPTZ)),
        (SELECT max(position) FROM checkpoints))
END;
COMMENT ON MACRO position_of IS 'The position that held when the log had kept no later event; a position is itself';
"""
    + "".join(
        f"""
CREATE MACRO {name}_as_of(asked) AS TABLE FROM {name}_at(position_of(asked));
COMMENT ON MACRO TABLE {name}_as_of IS '{meaning}';
"""
        for name, meaning in _AS_OF.items()
    )
    + f"""
CREATE MACRO changes_between(after, until) AS TABLE
    SELECT v.valid_from AS position, v.valid_from_time AS time, v.change, v.org, v.id, v.version, v.actor, v.task,
        p.content AS content_before, v.content AS content_after, v.trace_id, v.message_id, v.event_id
    FROM knowledge_versions v
    LEFT JOIN knowledge_versions p ON p.org = v.org AND p.id = v.id AND p.version = v.version - 1
    WHERE v.valid_from > position_of(after) AND v.valid_from <= position_of(until);
COMMENT ON MACRO TABLE changes_between IS
    'Versions made after the first moment, up to the second one; each a log position or a time';
CREATE VIEW funnel AS
    SELECT r.recall_id, r.position, r.time, r.org, r.kind, r.query, r.rank, r.item_id, r.item_version, r.relevance,
        r.actor, r.trace_id, v.verdict, v.position AS verdict_position, v.time AS verdict_time,
        v.actor AS verdict_actor, v.outcome, v.reason
    FROM recalls r
    LEFT JOIN (
        SELECT f.*, s.position AS served_at
        FROM (FROM feedback WHERE trace_id IS NOT NULL) f
        ASOF JOIN (FROM recalls WHERE trace_id IS NOT NULL AND item_id IS NOT NULL AND {counts()}) s
            ON s.org = f.org AND s.item_id = f.knowledge_id AND s.trace_id = f.trace_id AND f.position > s.position
    ) v ON v.served_at = r.position AND v.knowledge_id = r.item_id
    WHERE {counts("r.")};
COMMENT ON VIEW funnel IS
    'What was served and what came of it: each recalled item, with the verdicts that its trace gave on it afterwards;
    without looks at a page';
COMMENT ON COLUMN funnel.recall_id IS 'The recall that served the item last before the verdict';
COMMENT ON COLUMN funnel.verdict IS 'helpful, harmful or confirmed; null where the trace said nothing of the item';
CREATE VIEW last_served AS
    SELECT k.org, k.id, k.task, k.owner, k.status, count(r.position) AS times_served, max(r.time) AS last_served,
        arg_max(r.recall_id, r.position) AS recall_id, arg_max(r.query, r.position) AS query,
        arg_max(r.actor, r.position) AS actor
    FROM knowledge k LEFT JOIN recalls r ON r.org = k.org AND r.item_id = k.id AND {counts("r.")}
    GROUP BY k.org, k.id, k.task, k.owner, k.status;
COMMENT ON VIEW last_served IS 'When each item was served last, to whom and for what; nulls where it never was';
COMMENT ON COLUMN last_served.times_served IS
    'Recalls that served it, as whoever served it states them; without looks at a page';
CREATE VIEW duplicates AS
    SELECT org, list(id ORDER BY created_position) AS ids, count(*) AS items, list(DISTINCT owner) AS owners,
        arg_min(task, created_position) AS task, arg_min(content, created_position) AS content,
        min(created_at) AS first_created_at, max(created_at) AS last_created_at
    FROM knowledge WHERE status = 'active' AND NOT erased
    GROUP BY org, lower(trim(regexp_replace(content, '\\s+', ' ', 'g'))) HAVING count(*) > 1;
COMMENT ON VIEW duplicates IS
    'Active items of the same content, but for case and space and without erased ones; slim finds what says the same';
COMMENT ON COLUMN duplicates.ids IS 'Oldest first';
"""
    + memory_health.TABLES
)
