"""What is known already that is like this? The node's own search, which is not given up while a model waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from consumers.reactors.working import Work
from ledger.errors import LedgerError
from ledger.event import JsonObject
from projections.vectors.errors import EmbeddingFailed

MOST_CHARACTERS = 2_000
"""Of a text that is searched for."""
TRIES, PAUSE = 5, 1.0


async def similar_to(work: Work, text: str, visible: Sequence[str], most: int, as_of: int) -> list[JsonObject]:
    """Up to `most` active items within `visible` that fit a text best, as of a position; whatever their score.

    Without embeddings, by keywords alone. Raises what the search raises after TRIES.
    """
    await work.searcher.wait_for(as_of, 30.0)
    for attempt in range(TRIES):
        try:
            return await work.searcher.search(
                org=work.org,
                query=text[:MOST_CHARACTERS],
                visible=list(visible),
                top_k=most,
                min_score=0,
                as_of=as_of,
                paths="fused" if attempt < TRIES - 1 else "keyword",
            )
        except LedgerError as error:
            if attempt == TRIES - 1:
                raise
            if isinstance(error, EmbeddingFailed):
                continue
        await asyncio.sleep(PAUSE)
    raise AssertionError("the last try returns or raises")
