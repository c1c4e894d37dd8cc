"""Questions that people ask in SQL, ready to run: those of docs/how-to/query-with-duckdb.md, in its order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, in words, and in SQL."""

    words: str
    query: str


QUESTIONS = (
    Question(
        "Who said what, and when",
        """\
SELECT time, actor, type, entity_id, trace_id, message_id, data
FROM events
WHERE type <> 'recall.served' AND time > now() - INTERVAL 7 DAY
ORDER BY position DESC
LIMIT 100""",
    ),
    Question(
        "What was believed then",
        """\
SELECT id, owner, task, content, confidence
FROM knowledge_as_of(now() - INTERVAL 1 DAY)
WHERE status = 'active'
ORDER BY id""",
    ),
    Question(
        "What was harmful, to whom and why",
        """\
SELECT time, knowledge_id, actor, task, reason, trace_id
FROM feedback
WHERE verdict = 'harmful'
ORDER BY position DESC""",
    ),
    Question(
        "Who was given an item, and for which question",
        """\
SELECT time, actor, kind, query, rank, trace_id
FROM recalls
WHERE item_id = 'sample-fixed-sleep' AND kind <> 'page'
ORDER BY position DESC""",
    ),
    Question(
        "Where an item came from, and what was made of it",
        """\
SELECT direction, relation, ref, event_type, time FROM lineage_of('sample-fixed-sleep') ORDER BY position""",
    ),
    Question(
        "What came of what was served",
        """\
SELECT query, count(DISTINCT position) AS recalls, count(verdict) AS verdicts,
       count(*) FILTER (verdict = 'helpful') AS helpful, count(*) FILTER (verdict = 'harmful') AS harmful
FROM funnel
GROUP BY query
ORDER BY recalls DESC, query""",
    ),
    Question(
        "What nobody was given for a month",
        """\
SELECT id, task, owner, times_served, last_served
FROM last_served
WHERE status = 'active' AND (last_served IS NULL OR last_served < now() - INTERVAL 30 DAY)
ORDER BY last_served NULLS FIRST, id""",
    ),
    Question(
        "What stands there twice",
        """\
SELECT ids, items, owners, task FROM duplicates ORDER BY items DESC, ids""",
    ),
    Question(
        "Most helpful knowledge by domain",
        """\
WITH judged AS (
    SELECT org, knowledge_id AS id,
           count(*) FILTER (verdict = 'helpful') AS helped, count(*) FILTER (verdict = 'harmful') AS harmed
    FROM feedback GROUP BY ALL
)
SELECT tags->>'$.domain' AS domain, id, task, content, helped, harmed, confidence
FROM knowledge JOIN judged USING (org, id)
WHERE status = 'active' AND helped > 0
QUALIFY row_number() OVER (PARTITION BY tags->>'$.domain' ORDER BY helped - harmed DESC, helped DESC, id) <= 5
ORDER BY domain, helped - harmed DESC, helped DESC, id""",
    ),
    Question(
        "How much an item was trusted, and since when",
        """\
WITH moments AS (
    SELECT valid_from AS position, valid_from_time AS time, change AS what
    FROM knowledge_versions WHERE id = 'sample-fixed-sleep'
    UNION ALL
    SELECT position, time, verdict FROM feedback WHERE knowledge_id = 'sample-fixed-sleep'
)
SELECT m.position, m.time, m.what,
       (SELECT confidence FROM knowledge_as_of(m.position) WHERE id = 'sample-fixed-sleep') AS confidence
FROM moments m
ORDER BY m.position""",
    ),
    Question(
        "What is recalled and never helped, by who saved it",
        """\
SELECT saved.actor AS saved_by, count(DISTINCT r.item_id) AS items, count(DISTINCT r.position) AS recalls
FROM recalls r
JOIN knowledge_versions saved ON saved.org = r.org AND saved.id = r.item_id AND saved.version = 1
WHERE r.kind <> 'page' AND NOT EXISTS (
    FROM feedback f WHERE f.org = r.org AND f.knowledge_id = r.item_id AND f.verdict = 'helpful'
)
GROUP BY ALL
ORDER BY items DESC, saved_by""",
    ),
    Question(
        "How much there is, by month and type",
        """\
SELECT strftime(created_at, '%Y-%m') AS month, type, count(*) AS items, sum(length(content)) AS characters
FROM knowledge, unnest(types) AS each(type)
GROUP BY ALL
ORDER BY ALL""",
    ),
    Question(
        "An item's whole life",
        """\
WITH item AS (SELECT 'sample-fixed-sleep' AS id)
SELECT valid_from AS position, valid_from_time AS time, change AS what, 'version ' || version AS detail, actor, trace_id
FROM knowledge_versions WHERE id = (SELECT id FROM item)
UNION ALL
SELECT position, time, verdict, coalesce(reason, task, query), actor, trace_id
FROM feedback WHERE knowledge_id = (SELECT id FROM item)
UNION ALL
SELECT position, time, 'served', 'rank ' || rank || ' for: ' || coalesce(query, ''), actor, trace_id
FROM recalls WHERE item_id = (SELECT id FROM item)
ORDER BY position""",
    ),
    Question(
        "What a trace caused",
        """\
WITH RECURSIVE caused AS (
    SELECT event_id, 0 AS distance FROM events WHERE trace_id = 'trace-1'
    UNION
    SELECT e.event_id, c.distance + 1
    FROM events e JOIN caused c ON e.causation_id = c.event_id
    WHERE c.distance < 100
)
SELECT min(c.distance) AS distance, e.position, e.time, e.type, e.entity, e.entity_id, e.actor, e.trace_id, e.message_id
FROM caused c JOIN events e USING (event_id)
GROUP BY ALL
ORDER BY e.position""",
    ),
    Question(
        "What changed yesterday",
        """\
SELECT time, change, id, version, actor, task, content_before, content_after
FROM changes_between(current_date - INTERVAL 1 DAY, current_date)
ORDER BY position""",
    ),
    Question(
        "Knowledge that turned harmful",
        """\
WITH verdicts AS (
    SELECT org, knowledge_id, verdict, time, reason,
           row_number() OVER (PARTITION BY org, knowledge_id ORDER BY position DESC) AS nth_latest
    FROM feedback
)
SELECT k.id, k.task, k.content,
       count(*) FILTER (v.verdict = 'helpful') AS helped, count(*) FILTER (v.verdict = 'harmful') AS harmed,
       count(*) FILTER (v.verdict = 'helpful' AND nth_latest <= 10) AS helpful_lately,
       count(*) FILTER (v.verdict = 'harmful' AND nth_latest <= 10) AS harmful_lately,
       max(v.time) FILTER (v.verdict = 'harmful') AS last_harm,
       arg_min(v.reason, nth_latest) FILTER (v.verdict = 'harmful') AS last_reason
FROM verdicts v JOIN knowledge k ON k.org = v.org AND k.id = v.knowledge_id
WHERE k.status = 'active'
GROUP BY ALL
HAVING helped > 0 AND harmful_lately > helpful_lately
ORDER BY harmful_lately - helpful_lately DESC, last_harm DESC""",
    ),
)
