"""Weight of a cosine (-1..1) in a fused search, relative to the best keyword score, which is 1."""

from __future__ import annotations

# Hashed n-grams repeat the keywords' evidence with noise, so they count little; a sentence model finds paraphrases.
HASHED_VECTOR_WEIGHT = 0.3
SENTENCE_VECTOR_WEIGHT = 1.0
