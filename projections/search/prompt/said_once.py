"""Items of a context, each statement once: the first that makes it stays, and names the others.

Whoever saves a sentence twice, or saves what another has saved, has two items with lineage of their own. A search shows
both; a context would only tell its reader twice, at the price of something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from ledger.event import JsonObject
from projections.search.prompt.memory_text import is_personal, said
from projections.search.prompt.section import about_another, speaker
from projections.similar.undisguised import number_of, undisguised
from projections.vectors.tokens import one_form
from projections.views.knowledge.layers import layer_of

MOST_ASKED = 100
"""Items that are looked at, at most, for as many as are wanted that each say something else."""
_ENDS_A_SENTENCE = " .!…。！"

_Statement = tuple[str, str | None, str | None, str]
"""When it happened, whose it is, the number that it begins with, and its words."""
P = TypeVar("P")
Found = Callable[[int], Awaitable[tuple[list[JsonObject], P]]]
"""Finds up to so many items; the second part is what is told with them, such as a position."""


def said_once(items: Sequence[JsonObject]) -> list[JsonObject]:
    """The items in their order without those that say what one before them says; that one has their ids in `also`.

    An item comes before words of a session that say the same, as those have no lineage.
    """
    kept: dict[_Statement, JsonObject] = {}
    for item in items:
        key = _statement(item)
        first = kept.get(key)
        if first is None or "role" in first:
            kept[key] = item
        elif "role" not in item:
            kept[key] = {**first, "also": [*first.get("also", ()), item["id"]]}
    return list(kept.values())


async def found_once(found: Found[P], most: int, told: Sequence[JsonObject] = ()) -> tuple[list[JsonObject], P]:
    """Up to `most` items that each say something else, and nothing that is `told` already; with what `found` told last.

    Where some say the same, more are looked for.
    """
    already = {item["id"] for item in told}
    asked = min(MOST_ASKED, most + len(told))
    while True:
        items, more = await found(asked)
        once = [item for item in said_once([*told, *items]) if item["id"] not in already]
        if len(once) >= most or len(items) < asked or asked >= MOST_ASKED:
            break
        asked = min(MOST_ASKED, 2 * asked)
    best = {item["id"] for item in sorted(once, key=lambda item: -float(item["relevance"]))[:most]}
    return [item for item in once if item["id"] in best], more


def _statement(item: JsonObject) -> _Statement:
    """What an item says, whatever it looks like: what happened of its moment, a preference or profile of its person,
    and what somebody says of themselves of that one."""
    layer = item.get("layer") or layer_of(item)
    text = said(item, layer, _on_one_line)
    words = " ".join(one_form(undisguised(text)).split())
    happened = (item.get("memory") or {}).get("happened_at") or ""
    person = about_another(item, None) if is_personal(item, layer) else speaker(item, None)
    return happened, person, number_of(text), words.casefold().rstrip(_ENDS_A_SENTENCE)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
