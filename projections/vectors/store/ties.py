"""Which of several equally good hits belong to the best? The oldest, whatever order the engine found them in.

An engine cuts equal scores where it happens to stand, which depends on everything that it holds, also on what the
caller may not see. So one hit more than wanted is asked for; where that one is as good as the last one wanted, more.
"""

from __future__ import annotations

from collections.abc import Callable

from projections.vectors.store.port import Found

Hits = list[tuple[Found, float]]

MOST = 4_096
"""Beyond so many equal hits the engine's own order decides."""


def best(hits: Hits, limit: int, ask: Callable[[int], Hits]) -> Hits:
    """The `limit` best, best first, equals by age. `hits` are those for `limit + 1`; `ask` gets more."""
    asked = limit + 1
    while len(hits) == asked and hits[-1][1] == hits[limit - 1][1] and asked < MOST:
        asked = min(asked * 4, MOST)
        hits = ask(asked)
    return sorted(hits, key=lambda hit: (-hit[1], hit[0].valid_from, hit[0].item_id))[:limit]
