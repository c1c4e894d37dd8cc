"""Out of how many candidates is an answer made, so that asking for more changes nothing of what came first?

What an item is worth depends on the candidates that it is compared with. So an answer is ranked out of pools of fixed
sizes, each twice the one before: the first is the same for every `top_k`, and what only a larger one finds comes after.
"""

from __future__ import annotations

from collections.abc import Sequence

from projections.vectors.port import Found

# Source 004: each path looks at its ten best; source 001: twice as many candidates as results. Measured with 20, 30
# and 50 a path: the same quality, so the fewest.
LEAST_CANDIDATES = 20

Scores = dict[int, tuple[float | None, float | None]]
"""By the position of a version: its keyword score and its cosine, None where that path did not find it."""


def pool_sizes(top_k: int) -> list[int]:
    """The candidates that each path looks at, pool by pool, up to twice as many as results are asked for."""
    sizes = [LEAST_CANDIDATES]
    while sizes[-1] < 2 * top_k:
        sizes.append(2 * sizes[-1])
    return sizes


def pool(found: Sequence[Found], size: int) -> Scores:
    """What the first `size` of each path are, with their scores; equals by age, as the stores cut them."""
    words = [(each.keyword, each) for each in found if each.keyword is not None]
    near = [(each.vector, each) for each in found if each.vector is not None]
    scores: Scores = {}
    for score, each in _first(words, size):
        scores[each.valid_from] = (score, None)
    for score, each in _first(near, size):
        scores[each.valid_from] = (scores.get(each.valid_from, (None, None))[0], score)
    return scores


def _first(path: Sequence[tuple[float, Found]], size: int) -> Sequence[tuple[float, Found]]:
    if len(path) <= size:
        return path
    return sorted(path, key=lambda hit: (-hit[0], hit[1].valid_from, hit[1].item_id))[:size]
