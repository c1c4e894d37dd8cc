"""Shall a model choose before the ranking does (mission K8)? An optional first stage that no search depends on.

The model is told of at most MOST_TOLD items that the caller may see, the best by the hybrid paths: id, types, and the
beginning of the task. That it picks none is an answer: nothing fits. When it fails or takes too long, the answer is the
one that would have been given without it.
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
"""Seconds that the model has."""

Ranked = Callable[[int], Awaitable[list[JsonObject]]]
"""The caller's own results of the hybrid paths and the quality stage, up to so many, best first."""


@dataclass(frozen=True, slots=True)
class Routing:
    """Whether a model chose; when it was to and did not, `reason` says why."""

    routed: bool
    reason: str | None = None


async def routed(desk: Desk, query: str, top_k: int, ranked: Ranked) -> tuple[list[JsonObject], Routing]:
    """Up to `top_k` results: of those that a model picked, up to twice as many, in the order of the ranking."""
    if desk.router is None:
        return await ranked(top_k), Routing(False, "this node has no model to route with: set KLEDGER_MODEL_ROUTE")
    found = await ranked(MOST_TOLD)
    offered = found[:MOST_TOLD]
    if len(offered) <= top_k:
        return found[:top_k], Routing(False, "there is nothing to choose among")
    try:
        async with asyncio.timeout(PATIENCE):
            picked = await desk.router.pick(query, offered, 2 * top_k)
    except TimeoutError:
        return found[:top_k], Routing(False, f"the model did not answer within {PATIENCE:g} s")
    except LedgerError as error:
        return found[:top_k], Routing(False, f"{error.code}: {error.message}")
    chosen = set(picked)
    return [item for item in found if item["id"] in chosen][:top_k], Routing(True)
