"""Tie-breaking of equally good hits: the oldest first, independent of the engine's order.

An engine cuts off equal scores at an arbitrary place, which depends on everything that it holds, also on points that
the caller may not see. So one hit more than wanted is requested; where it ties with the last wanted one, more are.
"""

from __future__ import annotations

from collections.abc import Callable

from projections.vectors.store.port import Found

Hits = list[tuple[Found, float]]

MOST = 4_096
"""With more equal hits than this, the engine's own order decides."""


def best(hits: Hits, limit: int, ask: Callable[[int], Hits]) -> Hits:
    """The `limit` best hits, best first, ties by age. `hits` are those for `limit + 1`; `ask` gets more."""
    requested = limit + 1
    while len(hits) == requested and hits[-1][1] == hits[limit - 1][1] and requested < MOST:
        requested = min(requested * 4, MOST)
        hits = ask(requested)
    return sorted(hits, key=lambda hit: (-hit[1], hit[0].valid_from, hit[0].item_id))[:limit]
