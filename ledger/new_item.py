"""Initial counts of a new item, and the counts that were added since.

`helpful` begins at 1 before anybody rated the item, because the quality formula needs it. Texts for people and for
models show the number of actual verdicts; events and JSON have the counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCORE, HELPFUL, HARMFUL, CONFIDENCE = 3, 1, 0, 0.5


def helped_and_harmed(counts: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers of helpful and of harmful verdicts of an item, from its `eval`.

    With the item's cases, the count that its save had can be derived: if it is not the initial count, an import set it,
    and the count is returned as it is.
    """
    return _verdicts(counts, "helpful", HELPFUL), _verdicts(counts, "harmful", HARMFUL)


def _verdicts(counts: Mapping[str, Any], verdict: str, initial: int) -> int:
    count, cases = int(counts[verdict]), counts.get(f"{verdict}_history")
    imported = cases is not None and count - len(cases) != initial
    return count if imported else max(0, count - initial)
