"""Confidence in an item: the one stated at its save, adjusted by the evidence that counts.

    confidence = (2 x stated + supporting) / (2 + supporting + 2 x opposing)

The stated confidence weighs as much as two cases. `supporting` are helpful cases and confirmations, `opposing` harmful
cases, each of which weighs double, as in the quality formula. A case counts unless it names a trace to which the item
was never served (`credit` is `not_served`): such a case is kept and shown, but is no evidence. A confirmation always
counts: an actor to whom the item was not served is an independent source.
"""

from __future__ import annotations

PRIOR = 2

CONFIDENCE = f"(({PRIOR} * {{stated}} + {{supporting}}) / ({PRIOR} + {{supporting}} + 2 * {{opposing}}))"
"""The formula in SQL."""

SUPPORTS = "(verdict = 'confirmed' OR (verdict = 'helpful' AND credit <> 'not_served'))"
CREDITED = "(verdict <> 'confirmed' AND credit <> 'not_served')"
"""Predicates of rows of `feedback`: what is evidence for an item, and which cases of its use count."""
SUPPORTING = f"count(*) FILTER {SUPPORTS}"
OPPOSING = "count(*) FILTER (verdict = 'harmful' AND credit <> 'not_served')"
"""Aggregates over rows of `feedback`."""


def counted_as(verdict: str, credit: str) -> tuple[int, int]:
    """What one case adds to the supporting and to the opposing evidence: SUPPORTING and OPPOSING of one row."""
    credited = credit != "not_served"
    supports = verdict == "confirmed" or (verdict == "helpful" and credited)
    return int(supports), int(verdict == "harmful" and credited)


def confidence(stated: float, supporting: int, opposing: int) -> float:
    """Between 0 and 1; equal to `stated` where there is no evidence yet."""
    return (PRIOR * stated + supporting) / (PRIOR + supporting + 2 * opposing)
