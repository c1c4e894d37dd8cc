"""What is known already that is like this? The node's own search, which is not given up while a model waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from consumers.reactors.work import Work
from kledger.contract.errors import LedgerError
from kledger.contract.scopes import PUBLIC
from ledger.event import JsonObject

MOST_CHARACTERS = 2_000
"""Of a text that is searched for."""
TRIES, PAUSE = 5, 1.0
SPARE = 4
"""How many more are looked up, since some of them may be others'."""


async def similar_to(
    work: Work, text: str, owner: str, scopes: Sequence[str], most: int, as_of: int
) -> list[JsonObject]:
    """Up to `most` active items within `scopes` that fit a text best, as of a position; whatever their score.

    Only the owner's own, those scoped to the owner, and public ones: that a request names a scope for what it finds is
    no proof that its owner may read what others keep there. Raises what the search raises after TRIES.
    """
    visible = list(dict.fromkeys([owner, *scopes, PUBLIC]))
    await work.searcher.wait_for(as_of, 30.0)
    for attempt in range(TRIES):
        try:
            found = await work.searcher.search(
                org=work.org,
                query=text[:MOST_CHARACTERS],
                visible=visible,
                top_k=SPARE * most,
                min_score=0,
                as_of=as_of,
                paths="fused" if attempt < TRIES - 1 else "keyword",
            )
            may = [item for item in found if item["owner"] == owner or {owner, PUBLIC} & set(item["scopes"])]
            return may[:most]
        except LedgerError:
            if attempt == TRIES - 1:
                raise
        await asyncio.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")
