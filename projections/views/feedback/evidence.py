"""How sure is the ledger of an item? Its stated confidence, moved by the evidence that counts (mission K3).

    confidence = (2 x stated + supporting) / (2 + supporting + 2 x opposing)

What was stated weighs as much as two cases. `supporting` are helpful cases and confirmations, `opposing` harmful
cases, each of which weighs double, as in the quality formula of source 001. A case counts unless it names a trace to
which the item was never served (`credit` is `not_served`): that one is kept and shown, and moves nothing. A
confirmation counts all the same: who says a thing without having been told it is the better witness.
"""

from __future__ import annotations

PRIOR = 2

CONFIDENCE = f"(({PRIOR} * {{stated}} + {{supporting}}) / ({PRIOR} + {{supporting}} + 2 * {{opposing}}))"
"""The same in SQL."""

SUPPORTING = "count(*) FILTER (verdict = 'confirmed' OR (verdict = 'helpful' AND credit <> 'not_served'))"
OPPOSING = "count(*) FILTER (verdict = 'harmful' AND credit <> 'not_served')"
"""Aggregates over rows of `feedback`."""


def confidence(stated: float, supporting: int, opposing: int) -> float:
    """Between 0 and 1; what was stated, where there is no evidence yet."""
    return (PRIOR * stated + supporting) / (PRIOR + supporting + 2 * opposing)
