"""Personal data in the views: the owners of items, the embedded texts, and what is left in clear.

What a person wrote into another's item, as a writer in its ACL, is theirs as well. Being a reader in its ACL makes
nothing of it theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ledger.privacy.personal import persons
from ledger.privacy.sealed import ERASED, USER
from projections.engine.view import Instance, View
from projections.fold_kit.erased import erased_at
from projections.views.access import LISTED, listed

MOST_REMEMBERED = 20_000
"""Capacity of the cache, in items."""

_WROTE = "(v.actor = $1 AND v.change IN ('revised', 'evolved'))"
"""The predicate of versions `v` that the person made by writing; what they left as it was stays its owner's."""
_WROTE_BEFORE = f"""EXISTS (SELECT 1 FROM knowledge_versions AS v
    WHERE v.org = later.org AND v.id = later.id AND v.version <= later.version AND {_WROTE})"""
"""That of versions `later` in which words that the person wrote may stand still."""
_WAS_THEIRS = """EXISTS (SELECT 1 FROM {} AS b WHERE b.org = v.org AND b.id = v.id AND b.version <= v.version
    AND (b.owner = $1 OR (NOT starts_with(b.owner, 'user:') AND list_contains(b.scopes, $1))))"""
"""The predicate of versions `v` of what is whole in each version, and is or was the person's."""
_SOURCE = """CASE WHEN json_type(data, '$.source') = 'OBJECT' THEN concat(
        nullif(data->>'$.source.name', $2), nullif(data->>'$.source.category', $2),
        nullif(data->>'$.source.submitted_by', $2),
        array_to_string(list_filter(data->>'$.source.urls[*]', lambda x: x <> $2), '')) END"""
"""The text of an event's source, where it is readable."""
_MAY_BE_SOMEBODYS = f"(starts_with(owner, '{USER}') OR array_to_string(scopes, ' ') LIKE '%{USER}%')"
"""True of every version that belongs to a person; most belong to none, and are filtered out before the grouping."""


def persons_of(cursor: duckdb.DuckDBPyConnection, org: str, item_ids: Sequence[str]) -> dict[str, list[str]]:
    """The persons that each of these items belongs to, by every version of it; none for an unknown item."""
    rows = cursor.execute(
        f"""SELECT id, owner, list_distinct(flatten(list(scopes))) FROM knowledge_versions
           WHERE org = ? AND id IN ({LISTED}) AND {_MAY_BE_SOMEBODYS} GROUP BY id, owner""",
        [org, listed(item_ids)],
    ).fetchall()
    by_item: dict[str, set[str]] = {}
    for item_id, owner, scopes in rows:
        by_item.setdefault(item_id, set()).update(persons(owner, scopes))
    return {item_id: sorted(each) for item_id, each in by_item.items()}


class PersonsOfItems:
    """Cache of the persons of items, cleared whenever an event about an item is folded."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._as_of: tuple[Instance, int] | None = None
        self._known: dict[tuple[str, str], list[str]] = {}

    async def of(self, org: str, item_ids: Sequence[str]) -> dict[str, list[str]]:
        """See persons_of; an item without persons has an empty list."""
        now = (self._view.instance, self._view.instance.items_position)
        if now != self._as_of or len(self._known) > MOST_REMEMBERED:
            self._as_of, self._known = now, {}
        known = self._known
        if missing := [item_id for item_id in item_ids if (org, item_id) not in known]:
            loaded = await self._view.ask(persons_of, org, missing)
            known |= {(org, item_id): loaded.get(item_id, []) for item_id in missing}
        return {item_id: known[org, item_id] for item_id in item_ids}


def embedded_hashes(cursor: duckdb.DuckDBPyConnection, person: str) -> list[str]:
    """SHA-256 (hexadecimal) of each text of the person that may have a stored embedding: items, searches, goals."""
    rows = cursor.execute(
        f"""SELECT DISTINCT sha256(said) FROM (
               SELECT concat(task, chr(10), content) AS said FROM knowledge_versions AS later
               WHERE (owner = $1 OR list_contains(scopes, $1) OR {_WROTE_BEFORE}) AND NOT erased
               UNION ALL SELECT d.query FROM recall_events WHERE actor = $1 AND d.query <> $2
               UNION ALL SELECT description FROM goal_focuses WHERE owner = $1 AND description <> $2
           ) UNION SELECT lower(hex(said)) FROM recall_remains WHERE actor = $1 AND said IS NOT NULL""",
        [person, ERASED],
    ).fetchall()
    return sorted(text_hash for (text_hash,) in rows)


def items_of(cursor: duckdb.DuckDBPyConnection, person: str) -> list[str]:
    """The ids of the items that were, in any version, the person's, for them, or written by them."""
    rows = cursor.execute(
        f"""SELECT DISTINCT id FROM knowledge_versions AS v
            WHERE owner = $1 OR list_contains(scopes, $1) OR {_WROTE} ORDER BY id""",
        [person],
    ).fetchall()
    return [item_id for (item_id,) in rows]


def resources_of(cursor: duckdb.DuckDBPyConnection, person: str) -> list[str]:
    """The ids of the person's resources that have, or ever had, a secret."""
    rows = cursor.execute(
        "SELECT DISTINCT id FROM resource_versions WHERE owner = ? AND secure_body <> '' ORDER BY id", [person]
    ).fetchall()
    return [resource_id for (resource_id,) in rows]


_TEXTS = f"""
SELECT org, entity_id, position, unnest(['task', 'content', 'tags', 'source']) AS field,
    unnest([data->>'task', data->>'content', data->>'tags', {_SOURCE}]) AS said
FROM events WHERE entity = 'knowledge'
"""
# Each version of the person's with the events that its words are from: the last, up to it, that states each part.
_WORDS = f"""
SELECT s.position FROM (
    SELECT v.org, v.id, v.valid_from, p.field
    FROM knowledge_versions AS v, (SELECT unnest(['task', 'content', 'tags', 'source']) AS field) AS p
    WHERE owner = $1 OR (NOT starts_with(owner, '{USER}') AND list_contains(scopes, $1))
) AS v
ASOF JOIN (FROM ({_TEXTS}) WHERE said IS NOT NULL) AS s
    ON s.org = v.org AND s.entity_id = v.id AND s.field = v.field AND v.valid_from >= s.position
WHERE s.said NOT IN ('', '{{}}', $2)
"""


def left_in_clear(cursor: duckdb.DuckDBPyConnection, person: str) -> list[int]:
    """Positions of the events with text of the person that is still readable, as it was never sealed."""
    rows = cursor.execute(
        f"""{_WORDS}
           UNION SELECT position FROM events WHERE actor = $1 AND type IN ('knowledge.revised', 'knowledge.evolved')
               AND (coalesce(data->>'content', $2) <> $2 OR coalesce(data->>'task', $2) <> $2)
           UNION SELECT position FROM events WHERE entity = 'profile' AND (data->>'owner') = $1
               AND coalesce(data->>'content', data->>'patch', '{{}}') <> '{{}}'
           UNION SELECT valid_from FROM resource_versions AS v
               WHERE change = 'saved' AND NOT {erased_at("valid_from", "title")}
               AND {_WAS_THEIRS.format("resource_versions")}
           UNION SELECT valid_from FROM document_versions AS v
               WHERE change = 'ingested' AND NOT {erased_at("valid_from", "title")}
               AND {_WAS_THEIRS.format("document_versions")}
           UNION SELECT position FROM recall_events WHERE actor = $1 AND d.query <> $2
           UNION SELECT position FROM recall_remains WHERE actor = $1 AND said IS NOT NULL
           UNION SELECT position FROM goal_focuses WHERE owner = $1 AND description <> $2
           UNION SELECT position FROM feedback
               WHERE (actor = $1 OR knowledge_id IN (SELECT id FROM knowledge_versions WHERE owner = $1))
               AND coalesce(nullif(task, $2), nullif(query, $2), nullif(outcome, $2), nullif(reason, $2)) IS NOT NULL
           UNION SELECT requested_position FROM evolutions WHERE owner = $1 AND feedback <> $2
           UNION SELECT requested_position FROM held_statements
               WHERE statement::VARCHAR <> '{{}}'
               AND (owner = $1 OR (NOT starts_with(owner, 'user:') AND list_contains(scopes, $1)))
           UNION SELECT requested_position FROM extractions
               WHERE owner = $1 AND replace(replace(messages::VARCHAR, '{{}}', ''), ',', '') <> '[]'
           ORDER BY position""",
        [person, ERASED],
    ).fetchall()
    return [position for (position,) in rows]


def forgotten(cursor: duckdb.DuckDBPyConnection) -> list[tuple[str, str, int]]:
    """(person, receipt, position) of every forgotten person, in the order of the log."""
    return cursor.execute(
        """SELECT data->>'subject', data->>'receipt', position
           FROM events WHERE type = 'subject.forgotten' ORDER BY position"""
    ).fetchall()
