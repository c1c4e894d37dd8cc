"""Whom the text of an event belongs to by what was there before, which the event itself does not say.

A revert states anew what a writer in an item's ACL wrote, and a model rewrites it: that is the writer's as well,
whoever asked for it. Every part of a version is followed to the event that stated it. A resource or a document belongs
to all whose it ever was, as an item does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

import duckdb

from ledger.event import NewEvent
from ledger.events.conflict import ConflictResolved
from ledger.events.document import DocumentFact
from ledger.events.evolution import EvolutionProposed
from ledger.events.knowledge import KnowledgeEvolved, KnowledgeReverted
from ledger.events.resource import ResourceFact
from ledger.events.summary import AbstractCompleted
from ledger.privacy.personal import is_person, persons
from projections.engine.view import View
from projections.fold_kit.sql_text import among
from projections.live.persons import persons_of

_PARTS = ("task", "content", "tags", "source")
_STATED = ", ".join(f"(e.data->>'{part}') IS NOT NULL" for part in _PARTS)
_CHANGES = ("revised", "evolved", "reverted")
"""What makes a version of other words than those of the one before."""

_RESOURCES, _DOCUMENTS = "resource_versions", "document_versions"

Words = tuple[frozenset[str], ...]
"""The persons who wrote each part."""
_OF_THE_OWNER: Words = (frozenset(),) * len(_PARTS)


def writers_of(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, version: int) -> list[str]:
    """The persons who wrote, by a revision or a rewriting, words that stand in this version."""
    rows = cursor.execute(
        f"""SELECT v.version, v.change, v.actor,
                coalesce((e.data->>'to_version')::BIGINT, (e.data->>'base_version')::BIGINT), {_STATED}
            FROM knowledge_versions AS v JOIN events AS e ON e.position = v.valid_from
            WHERE v.org = $1 AND v.id = $2 AND v.version <= $3 AND v.change IN {_CHANGES}
                AND e.entity = 'knowledge' AND e.entity_id = $2 -- so that no other event's data is read
            ORDER BY v.version""",
        [org, item_id, version],
    ).fetchall()
    words: list[tuple[int, Words]] = [(0, _OF_THE_OWNER)]
    for made, change, actor, earlier, *stated in rows:
        by = frozenset({actor}) if is_person(actor) else frozenset[str]()
        if change == "revised":
            new = by
        else:
            standing = _standing(words, earlier)
            if change == "reverted":
                words.append((made, standing))
                continue
            new = by.union(*standing)
        before = words[-1][1]
        words.append((made, tuple(new if said else old for said, old in zip(stated, before, strict=True))))
    return sorted(frozenset[str]().union(*_standing(words, version)))


def _standing(words: Sequence[tuple[int, Words]], version: int) -> Words:
    """The words of a version: those of the last one up to it that has others."""
    return next(each for made, each in reversed(words) if made <= version)


def writers_before(cursor: duckdb.DuckDBPyConnection, org: str, evolution: str) -> list[str]:
    """The same of the version that an evolution rewrites."""
    asked = cursor.execute(
        "SELECT item_id, base_version FROM evolutions WHERE org = ? AND id = ?", [org, evolution]
    ).fetchone()
    return [] if asked is None else writers_of(cursor, org, *asked)


def persons_in_conflict(cursor: duckdb.DuckDBPyConnection, org: str, conflict: str) -> list[str]:
    """The persons of the two items of a conflict."""
    items = cursor.execute("SELECT first, second FROM conflicts WHERE org = ? AND id = ?", [org, conflict]).fetchone()
    found = {} if items is None else persons_of(cursor, org, items)
    return sorted({person for each in found.values() for person in each})


def persons_of_wholes(
    cursor: duckdb.DuckDBPyConnection, table: str, org: str, named: Collection[str]
) -> dict[str, list[str]]:
    """The persons that resources or documents belong to, by every version of them in a table of versions."""
    rows = cursor.execute(
        f"SELECT DISTINCT id, owner, scopes FROM {table} WHERE org = ? AND id IN ({among(named)})", [org]
    ).fetchall()
    found: dict[str, set[str]] = {}
    for each, owner, scopes in rows:
        found.setdefault(each, set()).update(persons(owner, scopes))
    return {each: sorted(theirs) for each, theirs in found.items()}


def persons_of_abstract(cursor: duckdb.DuckDBPyConnection, org: str, abstract: str) -> list[str]:
    """The same of the document that is summed up."""
    asked = cursor.execute(
        "SELECT said->'requested'->>'document' FROM processes WHERE org = ? AND kind = 'abstract' AND id = ?",
        [org, abstract],
    ).fetchone()
    return [] if asked is None else persons_of_wholes(cursor, _DOCUMENTS, org, asked).get(asked[0], [])


def persons_before(cursor: duckdb.DuckDBPyConnection, events: Sequence[NewEvent]) -> list[list[str]]:
    """For each event, the persons its text belongs to by what its resource, document, conflict or version was.

    Resources and documents, of which an import states many, are asked for together.
    """
    wholes: dict[tuple[str, str], set[str]] = {}
    for event in events:
        if (table := _table_of(event)) is not None:
            wholes.setdefault((table, event.org), set()).add(event.entity_id)
    theirs = {(table, org): persons_of_wholes(cursor, table, org, named) for (table, org), named in wholes.items()}
    return [
        _before(cursor, event)
        if (table := _table_of(event)) is None
        else theirs[table, event.org].get(event.entity_id, [])
        for event in events
    ]


def _table_of(event: NewEvent) -> str | None:
    """The table of versions of a resource or a document; None for the others."""
    if isinstance(event.fact, ResourceFact):
        return _RESOURCES
    return _DOCUMENTS if isinstance(event.fact, DocumentFact) else None


def _before(cursor: duckdb.DuckDBPyConnection, event: NewEvent) -> list[str]:
    org, named = event.org, event.entity_id
    match event.fact:
        case KnowledgeReverted(to_version=version) | KnowledgeEvolved(base_version=version):
            return writers_of(cursor, org, named, version)
        case EvolutionProposed():
            return writers_before(cursor, org, named)
        case ConflictResolved():
            return persons_in_conflict(cursor, org, named)
        case AbstractCompleted():
            return persons_of_abstract(cursor, org, named)
        case other:
            raise TypeError(f"nothing says whose {type(other).__name__} was before")


def belonged_before(view: View) -> Callable[[Sequence[NewEvent]], Awaitable[list[list[str]]]]:
    """Asks the view that, of many events in one question."""

    async def found(events: Sequence[NewEvent]) -> list[list[str]]:
        return await view.ask(persons_before, events)

    return found
