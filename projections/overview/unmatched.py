"""Words of a filter that nothing has, as a slip of the keyboard makes them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from datetime import datetime

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from projections.fold_kit.page import Selection
from projections.overview.facets import facets
from projections.views.knowledge.listing import Wanted, has_any, selected

MOST = 10
"""Words that are looked at: each is a question of its own."""
MOST_ITEMS = 5_000
"""Items whose words may be near: to go through 100,000 takes twenty times as long as the search."""
_SHOWN = 5
_CLOSE = 0.7
_OF = {
    "types": ("types", "has the type"),
    "scopes": ("scopes", "has the scope"),
    "owner": ("owners", "belongs to"),
    "tags": ("tags", "has the tag"),
    "created_by": ("owners", "was stated first by"),
    "kind": ("kinds", "has the kind"),
}
"""By filter: the facet with the words that there are, and what is said of an item."""


def unmatched(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    as_of: int | None = None,
    moment: datetime | None = None,
    kinds: Sequence[str] = (),
) -> list[JsonObject]:
    """The words of these filters that no item of the caller's has, whatever its status, and what is near to each;
    `kinds` are those of memories.

    Nothing where the caller sees no item at all: it is not the words then.
    """
    without = [
        (field, word) for field, word, of in _one_by_one(wanted) if not has_any(cursor, org, caller, of, as_of, moment)
    ]
    seen = selected(cursor, org, caller, Wanted(status="all"), as_of, moment)
    without += [("kind", word) for word in kinds[:MOST] if not _has_kind(cursor, seen, word)]
    if not without:
        return []
    there = facets(cursor, org, caller, Wanted(status="all"), as_of, moment, MOST_ITEMS)
    if not there["total"]:
        return []
    if kinds:
        there["kinds"] = _kinds(cursor, seen)
    return [_told(field, word, [each["value"] for each in there[_OF[field][0]]]) for field, word in without]


def _one_by_one(wanted: Wanted) -> Iterator[tuple[str, str, Wanted]]:
    words = [("types", word, Wanted(types=[word], status="all")) for word in wanted.types]
    words += [("scopes", word, Wanted(scopes=[word], status="all")) for word in wanted.scopes]
    words += [("owner", word, Wanted(owner=word, status="all")) for word in filter(None, [wanted.owner])]
    words += [("tags", word, Wanted(tags=[word], status="all")) for word in wanted.tags]
    words += [("created_by", word, Wanted(created_by=word, status="all")) for word in filter(None, [wanted.created_by])]
    yield from words[:MOST]


def _has_kind(cursor: duckdb.DuckDBPyConnection, seen: Selection, kind: str) -> bool:
    of = f"SELECT 1 FROM (SELECT k.kind {seen.matching()}) WHERE kind = ? LIMIT 1"
    return bool(cursor.execute(of, [*seen.values, kind]).fetchall())


def _kinds(cursor: duckdb.DuckDBPyConnection, seen: Selection) -> list[JsonObject]:
    """The kinds of the first items, that of the most items first."""
    counted = f"""SELECT kind FROM (SELECT k.kind {seen.matching()} LIMIT {MOST_ITEMS})
        WHERE kind IS NOT NULL GROUP BY kind ORDER BY count(*) DESC, kind"""
    return [{"value": kind} for (kind,) in cursor.execute(counted, list(seen.values)).fetchall()]


def _told(field: str, word: str, there: Sequence[str]) -> JsonObject:
    near = next(iter(difflib.get_close_matches(word, there, 1, _CLOSE)), None)
    said = f"no item that you see {_OF[field][1]} {word!r}"
    if near is not None:
        said += f": is {near!r} meant?"
    elif there:
        more = ", …" if len(there) > _SHOWN else ""
        said += f": there are {', '.join(map(repr, there[:_SHOWN]))}{more}"
    return {"field": field, "value": word, "message": said}
