"""Words and numbers of recall: the intents of a message, the paths, and the least match of an answer."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from kledger.contract.bounds import UNSIGNED_ZERO

Intent = Literal["new_task", "follow_up", "bug_fix", "preference", "cross_agent"]
"""What a message asks for (source 004 §3.3)."""

LOOK: Literal["page"] = "page"
"""The kind of a recall for a person who looks at a page: nobody works with what it served, so it counts for nothing."""
LeftOut = Literal["min_score", "negative_quality", "min_match", "other_layer", "beyond_top_k", "not_chosen"]
"""Why what a search considered is no result of it; `not_chosen` by the model that routed it."""

MOST_RECALLED = 100
"""Results of one recall, as of one search."""
MOST_RECALLS_LISTED = 200
"""Recalls on one page of a list."""

FLOOR_OF_ONE, FLOOR_A_TENFOLD, MOST_FLOOR = 0.07, 0.0725, 0.36
"""The floor for one item, what it rises for ten times as many, and the most. Chosen on one half of the questions of
bench/nothing_known.py and reported on the other."""


def floor_of(visible: int) -> float:
    """The least `match` of an answer among so many items that the caller sees.

    The more there are, the better the best of those that answer nothing matches by chance.
    """
    return round(min(MOST_FLOOR, FLOOR_OF_ONE + FLOOR_A_TENFOLD * math.log10(max(1, visible))), 4)


Match = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]
