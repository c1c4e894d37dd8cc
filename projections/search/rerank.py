"""Rerank of what a recall found: relevance, moved by bounded factors that the answer shows.

Each factor moves the relevance by at most its share of SWAY, so that no item of little relevance is lifted by what it
is over one that answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from kledger.contract.words import RecallLayer
from projections.search.ranking import sway

SWAY: Mapping[str, float] = {
    "recency": 0.05,
    "layer": 0.06,
    "intent": 0.1,
    "confidence": 0.05,
    "use": 0.05,
    "whose": 0.15,
}
"""The most that a factor changes a relevance, as a share of it."""
RANKS: Mapping[RecallLayer, float] = {
    "procedural": 1.0,
    "semantic": 0.7,
    "shared": 0.7,
    "plain": 0.5,
    "document": 0.5,
    "episodic": 0.4,
    "short": 0.3,
    "working": 0.3,
}
"""Procedural before semantic before episodic (source 004, section 3.1); knowledge that is no memory in the middle."""
MAIN, ALSO = 1.0, 0.5
"""The factor `intent` of a layer that mainly answers it, and of one that is read as well."""


@dataclass(frozen=True, slots=True)
class Factors:
    """What a result was ranked by. `relevance` compares within one answer.

    `recency` 0 to 1, `layer` 0 to 1, `intent` 0 to 1, `confidence` and `use` -1 to 1, `whose` -1 or 0: each is
    multiplied with its sway.
    """

    relevance: float
    recency: float
    layer: float
    intent: float
    confidence: float
    use: float
    whose: float = 0.0
    """-1 for what another person prefers or says of themselves, where the question does not name them."""

    def score(self) -> float:
        """The relevance, moved by all factors."""
        moved = sum(SWAY[name] * float(getattr(self, name)) for name in SWAY)
        return self.relevance * (1 + moved)

    def shown(self) -> dict[str, float]:
        """The factors and the score, rounded; `whose` where it says something."""
        told = {name: round(getattr(self, name), 4) for name in _SHOWN if name != "whose" or self.whose}
        return {**told, "score": round(self.score(), 4)}


_SHOWN = tuple(each.name for each in fields(Factors))


def factors(
    *,
    relevance: float,
    freshness: float,
    layer: RecallLayer,
    intent: float,
    confidence: float,
    quality: float,
    of_another: bool = False,
) -> Factors:
    """The factors of one result; `quality` is score + helpful - 2 * harmful."""
    return Factors(
        relevance=relevance,
        recency=freshness,
        layer=RANKS[layer],
        intent=intent,
        confidence=2 * confidence - 1,
        use=sway(quality),
        whose=-1.0 if of_another else 0.0,
    )
