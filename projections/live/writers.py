"""Whose words stand in a version: of the persons who wrote into somebody else's item, as writers in its ACL.

A revert states such words anew, and a model rewrites them: what comes of that belongs to who wrote them as well,
whoever asked for it. Every part of a version is followed to the event that stated it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import duckdb

from ledger.event import NewEvent
from ledger.events.evolution import EvolutionProposed
from ledger.events.knowledge import KnowledgeEvolved, KnowledgeReverted
from ledger.privacy.personal import is_person
from projections.engine.view import View

_PARTS = ("task", "content", "tags", "source")
_STATED = ", ".join(f"(e.data->>'{part}') IS NOT NULL" for part in _PARTS)
_CHANGES = ("revised", "evolved", "reverted")
"""What makes a version of other words than those of the one before."""

Words = tuple[frozenset[str], ...]
"""The persons who wrote each part."""
_OF_THE_OWNER: Words = (frozenset(),) * len(_PARTS)


def writers_of(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, version: int) -> list[str]:
    """The persons who wrote, by a revision or a rewriting, words that stand in this version."""
    rows = cursor.execute(
        f"""SELECT v.version, v.change, v.actor,
                coalesce((e.data->>'to_version')::BIGINT, (e.data->>'base_version')::BIGINT), {_STATED}
            FROM knowledge_versions AS v JOIN events AS e ON e.position = v.valid_from
            WHERE v.org = ? AND v.id = ? AND v.version <= ? AND v.change IN {_CHANGES}
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


def wrote_for(view: View) -> Callable[[NewEvent], Awaitable[list[str]]]:
    """The persons who wrote the words that an event states anew or is made of."""

    async def found(event: NewEvent) -> list[str]:
        match event.fact:
            case KnowledgeReverted(to_version=version) | KnowledgeEvolved(base_version=version):
                return await view.ask(writers_of, event.org, event.entity_id, version)
            case EvolutionProposed():
                return await view.ask(writers_before, event.org, event.entity_id)
            case _:
                return []

    return found
