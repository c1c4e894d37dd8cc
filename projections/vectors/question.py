"""What a search looks for, and its terms: of a question among other sentences, what else is said counts for less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from projections.vectors.tokens import Sparse, query_terms


@dataclass(frozen=True, slots=True)
class Question:
    """A message with questions among other sentences: those with what stands `near` them count in full, and of the
    weight of all other words the share `rest`, however often each occurs: a log says the same in every line."""

    text: str
    near: str
    rest: float


Searched = str | Question
"""A text of which all counts alike, or one with questions."""


def searched_in(frame: str | Mapping[str, Any]) -> Searched:
    """What a frame of the wire asks for."""
    return frame if isinstance(frame, str) else Question(**frame)


def embedded_of(searched: Searched) -> str:
    """What a model embeds: what is near the questions, as a log beside them would fill its window."""
    return searched if isinstance(searched, str) else searched.near


def terms_of(searched: Searched, *, words_only: bool = False) -> Sparse:
    """The sparse vector of what is searched for."""
    if isinstance(searched, str):
        return query_terms(searched, words_only=words_only)
    weights: dict[int, float] = {}
    for text, share, once in ((searched.text, searched.rest, True), (searched.near, 1 - searched.rest, False)):
        terms = query_terms(text, words_only=words_only, each_once=once)
        for term, value in zip(terms.indices.tolist(), terms.values.tolist(), strict=True):
            weights[term] = weights.get(term, 0.0) + share * value
    return Sparse(
        indices=np.fromiter(weights.keys(), np.uint32, len(weights)),
        values=np.fromiter(weights.values(), np.float32, len(weights)),
    )
