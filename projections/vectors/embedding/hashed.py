"""Hashed n-grams: dense vectors without a model.

Three letters of a word around each of its letters, single Chinese characters and pairs of them are each hashed to one
dimension, with a sign of its own. Free, deterministic in every process, in both languages. They match other spellings
of the same fact, not paraphrases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from projections.vectors.question import Searched
from projections.vectors.tokens import normalise
from projections.words import CJK, STOP_WORDS

DIMENSIONS = 512
MODEL = "hashed-ngrams-1"
"""Where the vectors change, it is another name, or the points have another format: either is another store."""

_OTHER, _LETTER, _CJK = 0, 1, 2
_CJK_RANGES = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0xAC00, 0xD7AF))
_CJK_PAIR_WEIGHT = 0.5
_PIECES = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_LONG = 64
"""Characters of a run of letters that is hashed anew each time."""
_MOST_REMEMBERED = 1 << 15
OfRun = tuple[tuple[int, float], ...]
"""The features of a run of letters, each with its weight."""
_remembered: dict[str, OfRun] = {}


def hashed_vectors(texts: Sequence[str], dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """Unit vectors of texts, as rows: shape (texts, dimensions). A text without letters gives zeros."""
    out = np.zeros((len(texts), dimensions), np.float32)
    features, weights, owners = _features([normalise(text) for text in texts])
    if not len(features):
        return out
    # a feature that occurs n times in one text counts √n, so that repetition does not dominate
    order = np.argsort(features, kind="stable")  # of one feature its texts come in their order
    features, weights, owners = features[order], weights[order], owners[order]
    first = np.r_[True, (features[1:] != features[:-1]) | (owners[1:] != owners[:-1])]
    starts = np.flatnonzero(first)
    strength = np.sqrt(np.add.reduceat(weights, starts))
    features, owners = features[starts], owners[starts]
    sign = np.where(features & np.uint64(1), 1.0, -1.0)
    place = owners * dimensions + ((features >> np.uint64(1)) % np.uint64(dimensions)).astype(np.int64)
    flat = np.bincount(place, weights=sign * strength, minlength=len(texts) * dimensions)
    dense = flat.reshape(len(texts), dimensions)
    length = np.linalg.norm(dense, axis=1, keepdims=True)
    out[:] = dense / np.where(length > 0, length, 1.0)
    return out


def query_vector(text: str, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """The vector of one short text, as `hashed_vectors` has it up to the last digits, in a third of the time.

    A query has a few words, which other queries have as well: each is hashed once, and new ones together.
    """
    runs = _PIECES.findall(normalise(text))
    if any(len(run) > _LONG for run in runs):
        return np.asarray(hashed_vectors([text], dimensions)[0], np.float32)
    strengths: dict[int, float] = {}
    features = _features_of_runs(runs)
    for run in runs:
        for feature, weight in features[run]:
            strengths[feature] = strengths.get(feature, 0.0) + weight
    places: dict[int, float] = {}
    for feature in sorted(strengths):  # whatever the order of the words: sums of floats depend on it
        place, strength = (feature >> 1) % dimensions, math.sqrt(strengths[feature])
        places[place] = places.get(place, 0.0) + (strength if feature & 1 else -strength)
    length = math.sqrt(math.fsum(value * value for value in places.values()))
    out = np.zeros(dimensions, np.float32)
    for place, value in places.items():
        out[place] = value / (length if length > 0 else 1.0)
    return out


def hashed_vector_of(searched: Searched) -> NDArray[np.float32]:
    """The hashed vector of what is searched for."""
    if isinstance(searched, str):
        return query_vector(searched)
    both = searched.rest * query_vector(searched.text) + (1 - searched.rest) * query_vector(searched.near)
    length = float(np.linalg.norm(both))
    return np.asarray(both / (length if length > 0 else 1.0), np.float32)


def _features_of_runs(runs: Sequence[str]) -> Mapping[str, OfRun]:
    """The features of runs of letters, or of characters of a script without spaces, with their weights."""
    found = {run: features for run in runs if (features := _remembered.get(run)) is not None}  # a stop word has none
    new = list(dict.fromkeys(run for run in runs if run not in found))
    if new:  # a call for each took most of the time
        of_run: list[list[tuple[int, float]]] = [[] for _ in new]
        for feature, weight, owner in zip(*(column.tolist() for column in _features(new)), strict=True):
            of_run[owner].append((feature, weight))
        found |= zip(new, map(tuple, of_run), strict=True)
        if len(_remembered) + len(new) > _MOST_REMEMBERED:
            _remembered.clear()
        _remembered.update((run, found[run]) for run in new)
    return found


def _features(
    texts: Sequence[str],
) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.int64]]:
    """Every feature of every text: its hash, its weight, and the number of the text it is in."""
    # a newline on both sides of each text, so that every letter has a neighbour and texts do not touch
    codes = np.frombuffer(("\n" + "\n".join(texts) + "\n").encode("utf-32-le", "replace"), np.uint32)
    lengths = np.fromiter((len(text) + 1 for text in texts), np.int64, len(texts))
    owner = np.r_[0, np.repeat(np.arange(len(texts)), lengths)]
    kind = _kinds()[codes]
    letter, cjk = kind == _LETTER, kind == _CJK
    wide = codes.astype(np.uint64)

    at = np.flatnonzero(letter)
    starts = at[~letter[at - 1]]
    ends = at[~letter[at + 1]] + 1
    size = ends - starts
    word = np.repeat(np.arange(len(starts)), size)
    kept = ~_are_stops(_word_keys(wide, at, starts, word))[word] if len(at) else np.zeros(0, bool)
    at, word = at[kept], word[kept]
    left = np.where(letter[at - 1], wide[at - 1], 0)
    right = np.where(letter[at + 1], wide[at + 1], 0)
    trigram = mix(np.bitwise_or(left << np.uint64(42) | wide[at] << np.uint64(21), right))
    one = np.flatnonzero(cjk)
    two = one[cjk[one + 1]]
    single = mix(np.bitwise_or(wide[one], np.uint64(1 << 63)))
    pair = mix(wide[two] << np.uint64(21) | wide[two + 1] | np.uint64(1 << 63))
    return (
        np.concatenate((trigram, single, pair)),
        # normalised by length, so that a long word does not outweigh a short one
        np.concatenate((1 / np.sqrt(size[word]), np.ones(len(one)), np.full(len(two), _CJK_PAIR_WEIGHT))),
        np.concatenate((owner[at], owner[one], owner[two])),
    )


def _word_keys(
    codes: NDArray[np.uint64], at: NDArray[np.int64], starts: NDArray[np.int64], word: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """One hash for each word, from its letters and their places."""
    place = (at - starts[word]).astype(np.uint64)
    edges = np.flatnonzero(np.r_[True, word[1:] != word[:-1]])
    return np.asarray(np.add.reduceat(mix(np.bitwise_or(codes[at], place << np.uint64(21))), edges), np.uint64)


def mix(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of a number over all its bits (the finaliser of SplitMix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@cache  # 1 MB, and a while: made for the first text
def _kinds() -> NDArray[np.uint8]:
    """For every code point: a letter or digit, a character of a script without spaces, or neither."""
    kinds = np.fromiter((_LETTER if chr(c).isalnum() else _OTHER for c in range(0x30000)), np.uint8, 0x30000)
    for first, last in _CJK_RANGES:
        kinds[first : last + 1] = _CJK
    return np.concatenate((kinds, np.zeros(0x110000 - 0x30000, np.uint8)))


_STOP_CODES = np.frombuffer(("\n" + "\n".join(sorted(STOP_WORDS)) + "\n").encode("utf-32-le"), np.uint32)


@cache
def _stop_keys() -> NDArray[np.uint64]:
    wide = _STOP_CODES.astype(np.uint64)
    letter = _kinds()[_STOP_CODES] == _LETTER
    at = np.flatnonzero(letter)
    starts = at[~letter[at - 1]]
    word = np.repeat(np.arange(len(starts)), at[~letter[at + 1]] + 1 - starts)
    return np.sort(_word_keys(wide, at, starts, word))


def _are_stops(keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which of these words are stop words. `np.isin` sorts both sides each time."""
    stops = _stop_keys()
    return np.asarray(stops[np.minimum(np.searchsorted(stops, keys), len(stops) - 1)] == keys, np.bool_)
