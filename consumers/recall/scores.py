"""Scores in the answer of a reranker, checked and brought to one scale by texts whose rank is known beforehand.

Among the texts are some that repeat the query (ECHOES) and some that have nothing to do with it (CONTROLS). A reranker
that does not place each of the former above each of the latter is not worth being heard: a constant or reversed order
never does, a random one in one of 792 answers. The rest is measured between the two: 0 is no better than the best of
the unrelated texts, 1 as good as the worst of those that repeat the query, whatever the endpoint's own scale is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MOST_TEXTS = 20
"""Texts that are scored at once; with the control texts there are 32, which is what TEI takes in one request."""

CONTROLS = (
    "The ferry to the island leaves at noon, except on Sundays.",
    "Knead the dough until it no longer sticks to your hands.",
    "Her grandfather kept bees behind the old railway station.",
    "The orchestra tuned while the audience took their seats.",
    "羊毛衫要用冷水手洗，平铺晾干。",
    "昨晚的月亮很圆，湖面上没有一点风。",
    "这种茶树喜欢潮湿的山坡和酸性的土壤。",
)
_BEFORE = 4  # an order by place alone, forwards or backwards, has some of these above the echoes


def echoes(query: str) -> tuple[str, ...]:
    """Texts that repeat the query."""
    return (query, f'"{query}"', f"{query} {query}", f"{query}.", f"- {query}")


def with_controls(query: str, texts: Sequence[str]) -> list[str]:
    """The texts to score: control texts first and last, what repeats the query in the middle."""
    middle = len(texts) // 2
    return [*CONTROLS[:_BEFORE], *texts[:middle], *echoes(query), *texts[middle:], *CONTROLS[_BEFORE:]]


def raw_scores(document: Any, count: int) -> list[float | None]:
    """The score of each of `count` texts; None where the answer has none.

    Read are the answers of Cohere, Jina and vLLM (`{results: [{index, relevance_score}]}`) and of TEI
    (`[{index, score}]`). Places that were not asked about, further scores of one place, and scores that are no finite
    number are passed over.
    """
    rows = document.get("results") if isinstance(document, dict) else document
    found: list[float | None] = [None] * count
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        place, score = row.get("index"), row.get("relevance_score", row.get("score"))
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < count:
            continue
        if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
            continue
        if found[place] is None:
            found[place] = float(score)
    return found


def calibrated(known: Sequence[float], count: int) -> list[float] | None:
    """The scores of the `count` texts from 0 to 1; None where the reranker is not worth being heard."""
    middle, repeating = _BEFORE + count // 2, len(echoes(""))
    unrelated = [*known[:_BEFORE], *known[len(known) - (len(CONTROLS) - _BEFORE) :]]
    low, high = max(unrelated), min(known[middle : middle + repeating])
    if not low < high or not math.isfinite(high - low):
        return None
    own = [*known[_BEFORE:middle], *known[middle + repeating : len(known) - (len(CONTROLS) - _BEFORE)]]
    return [min(1.0, max(0.0, (score - low) / (high - low))) for score in own]
