"""Policy of a ranking: a name for all settings that rank, so that a recall can be computed again.

The same settings have the same name on every node. A recall's event keeps it beside the position of the views.
"""

from __future__ import annotations

import hashlib
from functools import cache

import orjson

from kledger.contract.recall import FLOOR_A_TENFOLD, FLOOR_OF_ONE, MOST_FLOOR
from projections import words
from projections.search import asked_differently, asking, match, model_rerank, ranking, rerank, whose
from projections.similar import change_words, first_person, later_first
from projections.vectors import tokens
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT, SENTENCE_VECTOR_WEIGHT
from projections.vectors.store.directories import FORMAT

_NAME_CHARACTERS = 12


@cache
def policy(model: str) -> str:
    """The name of the settings that rank with vectors of this model."""
    settings = {
        "model": model,
        "fusion": "scores",
        "weights": [HASHED_VECTOR_WEIGHT, SENTENCE_VECTOR_WEIGHT, ranking.RECENCY_WEIGHT, ranking.HALF_LIFE_DAYS],
        "quality": [ranking.QUALITY_SWAY, ranking.USUAL_QUALITY],
        "words": [
            *(tokens.PAIR_WEIGHT, tokens.FRAGMENT_WEIGHT, tokens.CJK_PAIR_WEIGHT, tokens.CJK_CHARACTER_WEIGHT),
            "".join(sorted(words.STOP_CHARACTERS)),
            " ".join(tokens.HOMES),
            hashlib.sha256(" ".join(sorted(words.STOP_WORDS)).encode()).hexdigest(),
            hashlib.sha256(" ".join(asking.PHRASES).encode()).hexdigest(),
            hashlib.sha256(match.BACKGROUND.read_bytes()).hexdigest(),
            FORMAT,
        ],
        "lent": [ranking.LENDING, ranking.LENT, ranking.LENT_BACK, match.LENT_MATCH],
        "match": [
            *(FLOOR_OF_ONE, FLOOR_A_TENFOLD, MOST_FLOOR),
            *(match.PASSAGE, match.LEAST_SHARE, match.UNRELATED, match.BESIDE_SURE, match.ASKING_SHARE),
            *(match.FEWEST_FRAGMENTS, match.LONE_FRAGMENT, match.LEAST_ASKED, match.MOST_BESIDE, asking.MOST_FAULTS),
        ],
        "whose": [whose.ANOTHERS, *whose.PATTERNS, first_person.ASKS.pattern],
        "rerank": [dict(rerank.SWAY), dict(rerank.RANKS), rerank.MAIN, rerank.ALSO],
        "later": [
            *(
                later_first.MOST,
                later_first.AS_WELL,
                later_first.CHANGES,
                later_first.ALIKE,
                later_first.ONE_VALUE,
                later_first.LESS_SURE,
            ),
            *(change_words.CHANGE.pattern, change_words.NEGATED.pattern, change_words.BELIEVED.pattern),
        ],
        "other words": [
            *(asked_differently.MOST_QUERIES, asked_differently.CLEARLY),
            *(asked_differently.ANCHOR, asked_differently.TRUST),
        ],
    }
    return _name(orjson.dumps(settings, option=orjson.OPT_SORT_KEYS))


def with_reranker(policy: str, model: str) -> str:
    """The name of these settings and a reranker that is heard within its bounds."""
    return _name(orjson.dumps([policy, model, model_rerank.REACH]))


def _name(settings: bytes) -> str:
    return hashlib.sha256(settings).hexdigest()[:_NAME_CHARACTERS]
