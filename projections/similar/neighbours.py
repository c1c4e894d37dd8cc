"""Candidate pairs of near-duplicates among many texts: locality-sensitive hashing of words and vectors, in n log n.

Every text gets short keys, so that similar texts share some of them: by words (minima of weighted hashes, rare
words counting for more: Ioffe's consistent sampling with one weight a word) and by vectors (sides of random
planes: Charikar). Texts are sorted by each key, and each is compared with a few that follow it with the same key. The
numbers of keys, bands and comparisons are constants, so the sort dominates the cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from projections.vectors.embedding.hashed import mix

BANDS = 24
ROWS = 3
PLANE_BANDS = 8
PLANES = 16
LOOKS = 4
"""How many following texts each one is compared with under one key."""
_SEED = 20260305


def neighbours(features: Sequence[NDArray[np.uint32]], vectors: NDArray[np.float32]) -> NDArray[np.int64]:
    """Pairs (i < j) of places in `features`, each once: shape (pairs, 2).

    `features` are the hashed words of each text, `vectors` their unit vectors, shape (texts, dimensions).
    """
    if len(features) < 2:
        return np.zeros((0, 2), np.int64)
    signatures = word_signatures(features)
    keys = [_mixed(signatures[:, at : at + ROWS]) for at in range(0, BANDS * ROWS, ROWS)]
    keys += plane_keys(vectors)
    # of many texts with one key, those with equal other keys are sorted next to each other
    kin = _mixed(signatures[:, : 2 * ROWS : ROWS])
    pairs = [_side_by_side(key, kin) for key in keys]
    both = np.unique(np.concatenate(pairs))
    return np.stack((both >> 32, both & 0xFFFFFFFF), axis=1).astype(np.int64)


def word_signatures(features: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint64]:
    """Weighted MinHash: BANDS * ROWS numbers a text; P(two are equal) is the texts' weighted Jaccard index."""
    counts = np.fromiter(map(len, features), np.int64, len(features))
    words = np.concatenate(features) if counts.sum() else np.zeros(0, np.uint32)
    known, places, used_by = np.unique(words, return_inverse=True, return_counts=True)
    weights = np.log1p(len(features) / used_by)
    weights[used_by < 2] = 1e-9  # in one text only: it makes no pair, and is used only where a text has no other word
    out = np.empty((len(features), BANDS * ROWS), np.uint64)
    starts = np.r_[0, np.cumsum(counts)[:-1]]
    blank = counts == 0
    seeds = np.random.default_rng(_SEED).integers(1, 1 << 63, BANDS * ROWS, np.uint64)
    for row, seed in enumerate(seeds):
        hashed = mix(known.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ seed)
        # the minimum of -log(u) / weight is at a word with a probability in proportion to its weight
        arrival = -np.log((hashed >> np.uint64(11)).astype(np.float64) / (1 << 53) + 1e-18) / weights
        rank = np.empty(len(known), np.uint32)
        rank[np.argsort(arrival, kind="stable")] = np.arange(len(known), dtype=np.uint32)
        least = np.zeros(len(features), np.uint64)
        if len(words):
            filled = ~blank
            least[filled] = np.minimum.reduceat(rank[places], starts[filled])
        least[blank] = np.flatnonzero(blank) + len(known)  # a text without words matches no other
        out[:, row] = least
    return out


def plane_keys(vectors: NDArray[np.float32]) -> list[NDArray[np.uint64]]:
    """PLANE_BANDS keys for each text: the sides of PLANES random planes on which its vector is."""
    random = np.random.default_rng(_SEED)
    powers = np.uint64(1) << np.arange(PLANES, dtype=np.uint64)
    keys = []
    for _ in range(PLANE_BANDS):
        planes = random.standard_normal((vectors.shape[1], PLANES)).astype(np.float32)
        keys.append(((vectors @ planes > 0) * powers).sum(axis=1, dtype=np.uint64))
    return keys


def _side_by_side(key: NDArray[np.uint64], kin: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Pairs, as i << 32 | j with i < j, of texts that have the same key and are near each other in its order."""
    order = np.lexsort((kin, key))
    sorted_key = key[order]
    pairs = []
    for step in range(1, LOOKS + 1):
        same = np.flatnonzero(sorted_key[step:] == sorted_key[:-step])
        one, other = order[same], order[same + step]
        pairs.append(np.minimum(one, other).astype(np.int64) << 32 | np.maximum(one, other))
    return np.concatenate(pairs)


def _mixed(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    key = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        key = mix(key * np.uint64(0x9E3779B97F4A7C15) + column)
    return key
