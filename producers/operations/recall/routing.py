"""Routing: an optional first stage in which a model picks candidates before the ranking; no search depends on it.

The model gets at most MOST_TOLD items visible to the caller, the best by the hybrid paths: id, types, and the start of
the task. An empty pick is an answer: nothing fits. Where the model fails or is too slow, the answer is the one without
routing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from producers.operations.desk import Desk

MOST_TOLD = 200
PATIENCE = 2.0
"""Timeout of the model in seconds."""

Ranked = Callable[[int], Awaitable[list[JsonObject]]]
"""Returns up to the given number of results of the hybrid paths and the quality stage, best first."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Whether a model picked the candidates; `reason` says why not."""

    routed: bool
    reason: str | None = None


async def routed(desk: Desk, query: str, top_k: int, ranked: Ranked) -> tuple[list[JsonObject], Routing]:
    """Up to `top_k` results in the order of the ranking, out of up to twice as many that a model picked."""
    if desk.router is None:
        return await ranked(top_k), Routing(False, "this node has no model to route with: set KLEDGER_MODEL_ROUTE")
    results = await ranked(MOST_TOLD)
    candidates = results[:MOST_TOLD]
    if len(candidates) <= top_k:
        return results[:top_k], Routing(False, "there is nothing to choose among")
    try:
        async with asyncio.timeout(PATIENCE):
            picked = await desk.router.pick(query, candidates, 2 * top_k)
    except TimeoutError:
        return results[:top_k], Routing(False, f"the model did not answer within {PATIENCE:g} s")
    except LedgerError as error:
        return results[:top_k], Routing(False, f"{error.code}: {error.message}")
    chosen = set(picked)
    return [item for item in results if item["id"] in chosen][:top_k], Routing(True)
