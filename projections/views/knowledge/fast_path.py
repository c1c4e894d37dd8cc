"""Fast path of the gate: judges plain events as a set, as imports bring thousands of them at once.

Plain events are most of a log: items saved, revised by their owners, and rated. Events of an item depend on no other
item, so that a few queries over all of them say for which items every event counts, and two statements update the
state of these. An item of which one event does not count, changes the owner or is of another kind is odd: its events
are judged one by one (projections/engine/gate.py, rules.py beside this). Both ways give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pyarrow as pa

from ledger.event import Fact
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeSaved
from ledger.item_status import MAKES
from projections.fold_kit import late_compute as pc
from projections.fold_kit.identities import Identities
from projections.fold_kit.sql_text import among
from projections.fold_kit.visibility import may_judge, readers, shared
from projections.fold_kit.workbench import Workbench

MAKE_VERSIONS: tuple[type[Fact], ...] = (KnowledgeSaved, KnowledgeRevised)
PLAIN: tuple[type[Fact], ...] = (*MAKE_VERSIONS, KnowledgeRated)
_ACTIVE = MAKES[KnowledgeSaved.name]
_COLUMNS = (
    *("position", "stored_us", "type", "key", "org", "entity_id", "actor", "owner", "through", "expected_version"),
    *("helpful", "harmful", "scopes", "shared_kind", "lifetime"),
)
"""What the rules of plain events ask for."""
_MADE = f"({among(fact.name for fact in MAKE_VERSIONS)})"

_THERE = """
SELECT EXISTS (FROM event_keys WHERE key IN ({keys})) OR EXISTS (FROM knowledge_state WHERE id IN ({items}))
"""
_NEW = "SELECT NOT EXISTS (FROM event_keys AS k SEMI JOIN plain USING (key))"
# Those of which an event is of another kind or repeats an id, and what a project has to approve: its status depends on
# who reads it.
_ODD = f"""
SELECT entity_id FROM envelopes
WHERE entity = 'knowledge' AND (type NOT IN ({among(fact.name for fact in PLAIN)})
    OR shared_kind IS NOT NULL OR key IN (SELECT key FROM repeated))
UNION
SELECT id FROM knowledge_state WHERE shared_kind IS NOT NULL
    AND id IN (SELECT entity_id FROM envelopes WHERE type = '{KnowledgeRevised.name}')
"""
# With all columns: the state is read once a batch.
_KNOWN = "FROM knowledge_state WHERE id IN (SELECT entity_id FROM plain)"
# In a batch of ratings only: whether all are new and each rated item exists, and whether any item is not public
# (_RATED_ALONE); then whether their raters may read these (_READ_ALONE). In any other batch: the items that are rated
# and not there (_UNKNOWN), or by somebody who does not read them (_UNREAD). Everybody reads public items.
_PUBLIC = "list_contains(scopes, 'public') OR list_contains(shared_with, 'public')"
_NOT_PUBLIC = f"FROM known WHERE NOT ({_PUBLIC})"
_RATED_ALONE = f"""
{_NEW} AND NOT EXISTS (FROM plain AS e ANTI JOIN known AS s ON s.org = e.org AND s.id = e.entity_id),
    EXISTS ({_NOT_PUBLIC})
"""
_READ_ALONE = f"""
SELECT NOT EXISTS (
    FROM plain AS e JOIN (
        SELECT org, id, {readers()} AS readers, {shared(readers())} AS shared {_NOT_PUBLIC}
    ) AS c ON c.org = e.org AND c.id = e.entity_id
    WHERE NOT {may_judge("e.actor", "e.through", "c.readers", "c.shared")}
)
"""
_UNKNOWN = f"""
SELECT entity_id
FROM (
    SELECT org, entity_id, min(position) AS position FROM plain
    WHERE type = '{KnowledgeRated.name}' GROUP BY org, entity_id
) AS r
ANTI JOIN (
    SELECT org, id, 0 AS position FROM known
    UNION ALL SELECT org, entity_id, position FROM plain WHERE type = '{KnowledgeSaved.name}'
) AS s ON s.org = r.org AND s.id = r.entity_id AND s.position < r.position
"""
_CLOSES = "scopes IS NOT NULL AND NOT list_contains(scopes, 'public')"
_CLOSED = f"""
SELECT org, id, owner, scopes, shared_with FROM known
WHERE id IN (SELECT entity_id FROM plain WHERE type = '{KnowledgeRated.name}')
    AND (NOT ({_PUBLIC}) OR id IN (SELECT entity_id FROM plain WHERE {_CLOSES}))
"""
_UNREAD = f"""
SELECT DISTINCT entity_id
FROM (
    SELECT e.type, e.entity_id, e.actor, e.through, coalesce(k.owner, first_value(e.actor) OVER before) AS owner,
        coalesce(last_value(e.scopes IGNORE NULLS) OVER before, k.scopes) AS scopes,
        coalesce(k.shared_with, []::VARCHAR[]) AS shared_with
    FROM plain AS e LEFT JOIN closed AS k ON k.org = e.org AND k.id = e.entity_id
    WHERE e.entity_id IN (SELECT id FROM closed UNION SELECT entity_id FROM plain WHERE {_CLOSES})
    WINDOW before AS (PARTITION BY e.org, e.entity_id ORDER BY e.position ROWS UNBOUNDED PRECEDING)
)
WHERE type = '{KnowledgeRated.name}' AND scopes IS NOT NULL AND NOT list_contains(scopes, 'public')
    AND NOT {may_judge("actor", "through", readers(), shared(readers()))}
"""
# The first version of a new item is made by its save; later ones build on it.
_VERSIONS = f"""
SELECT position, entity_id, item_version::INTEGER AS item_version, closes,
    CASE type WHEN '{KnowledgeSaved.name}' THEN '{_ACTIVE}' END AS item_status,
    CASE type WHEN '{KnowledgeSaved.name}' THEN item_version = 1 AND coalesce(owner, actor) = actor
        ELSE item_version > 1 AND actor = item_owner AND owner IS NULL
            AND coalesce(expected_version = item_version - 1, true) END AS counts
FROM (
    SELECT e.position, e.entity_id, e.type, e.actor, e.owner, e.expected_version,
        coalesce(k.version, 0) + row_number() OVER versions AS item_version,
        coalesce(lag(e.position) OVER versions, k.version_position) AS closes,
        coalesce(k.owner, first_value(e.actor) OVER versions) AS item_owner
    FROM plain AS e LEFT JOIN known AS k ON k.org = e.org AND k.id = e.entity_id
    WHERE e.type IN {_MADE}
    WINDOW versions AS (PARTITION BY e.org, e.entity_id ORDER BY e.position)
)
ORDER BY position
"""
_ITEMS = f"""
SELECT org, entity_id, count(*) FILTER (type IN {_MADE}) AS versions,
    max(position) FILTER (type IN {_MADE}) AS version_position,
    make_timestamptz(arg_max(stored_us, position) FILTER (type IN {_MADE})) AS changed_at,
    max(position) AS position, make_timestamptz(arg_max(stored_us, position)) AS updated_at,
    sum(helpful)::BIGINT AS helpful, sum(harmful)::BIGINT AS harmful,
    arg_min(actor, position) AS owner, min(position) AS created_position,
    make_timestamptz(arg_min(stored_us, position)) AS created_at,
    bool_or(type = '{KnowledgeSaved.name}') AS saved, max(lifetime) AS lifetime,
    arg_max(scopes, position) FILTER (scopes IS NOT NULL) AS scopes
FROM plain GROUP BY org, entity_id
"""
# New rows in place of the old ones: of an update, DuckDB keeps 24 KB a column for each 2,048 rows of which it changes
# one, until no transaction goes on that began before.
_RENEW = f"""
INSERT INTO knowledge_state SELECT s.* REPLACE (
    s.version + i.versions AS version, coalesce(i.version_position, s.version_position) AS version_position,
    i.position AS position, i.updated_at AS updated_at,
    s.helpful + i.helpful AS helpful, s.harmful + i.harmful AS harmful,
    coalesce(i.changed_at, s.changed_at) AS changed_at, coalesce(i.scopes, s.scopes) AS scopes
)
FROM ({_ITEMS}) AS i JOIN known AS s ON s.id = i.entity_id AND s.org = i.org WHERE NOT i.saved
"""
_DROP_RENEWED = """
DELETE FROM knowledge_state USING (SELECT org, entity_id, max(position) AS position FROM plain GROUP BY ALL) AS i
WHERE knowledge_state.id = i.entity_id AND knowledge_state.org = i.org AND knowledge_state.position < i.position
"""
_ADD = f"""
INSERT INTO knowledge_state BY NAME
SELECT * EXCLUDE (entity_id, versions, saved) REPLACE (coalesce(scopes, []) AS scopes), entity_id AS id,
    versions AS version, '{_ACTIVE}' AS status, 0 AS supporting, 0 AS opposing, [] AS shared_with
FROM ({_ITEMS}) WHERE saved
"""


def ratings_count(bench: Workbench, envelopes: pa.Table) -> bool:
    """Whether all of these events, which are ratings, count. Presents them as `plain`."""
    _present(bench, envelopes.select(_COLUMNS))
    ((valid, some_not_public),) = bench.rows(_RATED_ALONE)
    return bool(valid) and not (some_not_public and not _holds(bench, _READ_ALONE))


def all_new(bench: Workbench, envelopes: pa.Table, known: Identities, key_of: Callable[[str], int]) -> pa.Table | None:
    """Position, item_version, closes and item_status of these saves, if each makes an item that is new; else None.

    `known` are the ids of the view, by the keys that `key_of` makes. Presents the events as `plain`.
    """
    keys, items = envelopes["key"].to_pylist(), envelopes["entity_id"].to_pylist()
    if len({*keys}) < len(keys) or len({*items}) < len(items) or envelopes["shared_kind"].null_count < len(items):
        return None
    if not pc.all(pc.equal(pc.coalesce(envelopes["owner"], envelopes["actor"]), envelopes["actor"])).as_py():
        return None
    keys = [key for key in keys if known.may_have(key)]
    there = [item for item in items if known.may_have(key_of(item))]
    if (keys or there) and _holds(bench, _THERE.format(keys=among(keys), items=among(there))):
        return None
    bench.present({"plain": envelopes.select(_COLUMNS)})
    return pa.table(
        {
            "position": envelopes["position"],
            "item_version": pa.repeat(1, len(items)),
            "closes": pa.nulls(len(items)),
            "item_status": pa.repeat(_ACTIVE, len(items)),
        }
    )


def odd_items(bench: Workbench) -> pa.Array:
    """The ids of items in the relation `envelopes` that cannot be judged as a set; `repeated` are keys of events."""
    return bench.table(_ODD)["entity_id"]


def versions(bench: Workbench, facts: Collection[type[Fact]], envelopes: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Judge plain events, none of an odd item.

    Returns those whose item's events all count, and position, item_version, closes and item_status of each of them that
    makes a version. Presents the former as `plain`.
    """
    plainly = envelopes.select(_COLUMNS)
    _present(bench, plainly)
    failing: list[pa.ChunkedArray] = []
    if KnowledgeRated in facts:
        bench.present({"closed": bench.table(_CLOSED)})
        failing += [bench.table(query)["entity_id"] for query in (_UNKNOWN, _UNREAD)]
    made = bench.table(_VERSIONS)
    failing.append(made.filter(pc.invert(pc.fill_null(made["counts"], False)))["entity_id"])
    if any(map(len, failing)):
        ids = pa.chunked_array([chunk for each in failing for chunk in each.chunks], pa.string())
        made = made.filter(pc.invert(pc.is_in(made["entity_id"], ids.combine_chunks())))
        plainly = plainly.filter(pc.invert(pc.is_in(plainly["entity_id"], ids.combine_chunks())))
        bench.present({"plain": plainly})
    return plainly, made.select(("position", "item_version", "closes", "item_status"))


def count(bench: Workbench, facts: Collection[type[Fact]]) -> None:
    """Update the state of the items of the relation `plain`, all of whose events are accepted."""
    if {*facts} != {KnowledgeSaved}:
        bench.run(_RENEW)
        bench.run(_DROP_RENEWED)
    if KnowledgeSaved in facts:
        bench.run(_ADD)


def _present(bench: Workbench, plain: pa.Table) -> None:
    """Have these events as `plain`, and the state of their items as `known`."""
    bench.present({"plain": plain})
    bench.present({"known": bench.table(_KNOWN)})


def _holds(bench: Workbench, query: str) -> bool:
    ((holds,),) = bench.rows(query)
    return bool(holds)
