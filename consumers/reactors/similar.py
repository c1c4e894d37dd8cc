"""Similarity lookup for reactors: the node's own search, with retries instead of giving up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from consumers.reactors.work import Work
from kledger.contract.errors import LedgerError
from kledger.contract.scopes import PUBLIC
from ledger.event import JsonObject
from projections.search.asked import Asked

MOST_CHARACTERS = 2_000
"""Characters of a search text."""
TRIES, PAUSE = 5, 1.0
SPARE = 4
"""Factor of extra results, since some may not be usable."""


async def similar_to(
    work: Work, text: str, owner: str, scopes: Sequence[str], most: int, as_of: int, *, own: bool = False
) -> list[JsonObject]:
    """Up to `most` active items within `scopes` that match a text best, as of a position, with any score.

    Only the owner's own items, those scoped to the owner, and public ones: a request that names a scope for its
    findings does not prove that its owner may read other items there. With `own` the owner's items alone.
    Raises what the search raises after TRIES.
    """
    visible = list(dict.fromkeys([owner, *scopes, PUBLIC]))
    await work.searcher.wait_for(as_of, 30.0)
    for attempt in range(TRIES):
        try:
            asked = Asked(
                org=work.org,
                query=text[:MOST_CHARACTERS],
                visible=visible,
                top_k=SPARE * most,
                min_score=0,
                as_of=as_of,
                paths="fused" if attempt < TRIES - 1 else "keyword",
                only={"owner": [owner]} if own else None,
            )
            results = await work.searcher.search(asked)
            usable = [item for item in results if item["owner"] == owner or {owner, PUBLIC} & set(item["scopes"])]
            return usable[:most]
        except LedgerError:
            if attempt == TRIES - 1:
                raise
        await asyncio.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")
