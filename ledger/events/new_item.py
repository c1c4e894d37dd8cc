"""What does an item count before anybody judged it? The counts that source 001 begins with, and what came since.

`helpful` begins at 1 although it helped nobody yet: the formula of the quality wants it so. Texts for people and for
models show what was said, and what nobody said as such; events and JSON keep the counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCORE, HELPFUL, HARMFUL, CONFIDENCE = 3, 1, 0, 0.5


def helped_and_harmed(counts: Mapping[str, Any]) -> tuple[int, int]:
    """How often an item is said to have helped and to have harmed, out of its `eval`.

    With its cases there, what is beside them is what its save stated: another count than items begin with was brought
    by an import, and is said whole.
    """
    return _said(counts, "helpful", HELPFUL), _said(counts, "harmful", HARMFUL)


def _said(counts: Mapping[str, Any], verdict: str, begins: int) -> int:
    count, cases = int(counts[verdict]), counts.get(f"{verdict}_history")
    brought = cases is not None and count - len(cases) != begins
    return count if brought else max(0, count - begins)
