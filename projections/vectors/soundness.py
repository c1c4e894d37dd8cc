"""Soundness check: compares the vectors with the view, point by point and by searches.

Compared are the ids, the versions, their readers, their validity, the hash of the text, every term with its weight, and
the count. A hashed vector is compared number by number; a model's vector cannot be computed again, so only its
presence, its size and its length of one are checked. A few versions are also searched for by their own words and
vectors, which detects damaged indexes. A node checks a few versions every few seconds (canary.py).
"""

from __future__ import annotations

import contextlib
from typing import Any

import duckdb

from kledger.contract.errors import LedgerError, ViewBehind
from projections.engine.view import View
from projections.vectors.canary import SHOWN, versions
from projections.vectors.client import START_SECONDS
from projections.vectors.errors import VectorProcessGone, VectorsDamaged
from projections.vectors.feed import VectorFeed

_AT_ONCE = 500
# How many versions of the first slice, and of each later one, are also searched for.
_SEARCHED, _SEARCHED_LATER = 8, 2
_WITHIN_SECONDS = 10.0


async def examined(feed: VectorFeed, view: View) -> dict[str, Any]:
    """Comparison of all versions in the vectors with those of the view, at the vectors' applied position."""
    wrong: list[str] = []
    positions = await view.ask(_positions, feed.org, feed.applied)
    for at in range(0, len(positions), _AT_ONCE):
        async with feed.turn:  # for one slice at a time, so that new items are indexed between two
            client, applied = feed.client, feed.applied  # together: see Canary.look
            stores = await view.ask(versions, feed.org, applied, positions[at : at + _AT_ONCE])
            wrong += await client.examine(stores, searched=_SEARCHED_LATER if at else _SEARCHED)
    async with feed.turn:
        client, applied = feed.client, feed.applied
        positions = await view.ask(_positions, feed.org, applied)
        status = await client.status()
        if status["count"] != len(positions):
            wrong.append(f"the vectors hold {status['count']} versions, the view {len(positions)}")
        try:
            digest = await client.digest()
        except VectorsDamaged as error:
            digest = None
            wrong.append(error.message)
        if wrong:
            feed.canary.report(wrong)
    return {
        "position": applied,
        "versions": len(positions),
        "count": status["count"],
        "awaiting": status["awaiting"],
        "digest": digest,
        "equal": not wrong,
        "differences": wrong[:SHOWN],
    }


async def sound(feed: VectorFeed, view: View) -> dict[str, Any]:
    """The result of `examined`, once the vectors have caught up with the view; a failure counts as unequal."""
    try:
        try:
            return await _examined_when_there(feed, view)
        except VectorProcessGone:  # its end says nothing of the vectors: the next process is examined
            return await _examined_when_there(feed, view)
    except (LedgerError, RuntimeError, duckdb.Error) as error:
        return {"equal": False, "differences": [str(error)]}


async def _examined_when_there(feed: VectorFeed, view: View) -> dict[str, Any]:
    await feed.until_started(START_SECONDS)
    with contextlib.suppress(ViewBehind):
        await feed.wait_for(view.position, _WITHIN_SECONDS)
    return await examined(feed, view)


def vector_reasons(feed: VectorFeed) -> list[str]:
    """Reasons for which a node is unhealthy: damaged vectors, or errors of the embedding endpoint."""
    reasons = []
    if (damage := feed.canary.damage) is not None:
        reasons.append(f"vectors: {damage.message} ({damage.code})")
    state = feed.backlog.state
    if state.trouble is not None:
        reasons.append(f"embeddings: {state.trouble}; searches go by words, {state.awaiting} versions await theirs")
    return reasons


def _positions(cursor: duckdb.DuckDBPyConnection, org: str, applied: int) -> list[int]:
    rows = cursor.execute(
        "SELECT valid_from FROM knowledge_versions WHERE org = $1 AND valid_from <= $2 AND NOT erased ORDER BY 1",
        [org, applied],
    )
    return [row[0] for row in rows.fetchall()]
