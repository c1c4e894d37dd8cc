"""Whether a text speaks in the first person: what it says, or asks for, is then of whoever says it."""

from __future__ import annotations

import re

FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|[Uu]s|[Oo]urs?)\b|[我俺咱]")

ASKS = re.compile(r"\b(?:i|my|mine|we|ours?)\b(?!\.e)|[我俺咱]", re.IGNORECASE)
"""Without *me*: *show me* asks for whatever there is. People ask in lower case."""


def speaks_of_itself(text: str) -> bool:
    """Whether whoever says a text says *I* or 我 in it."""
    return FIRST_PERSON.search(text) is not None


def asks_of_itself(asked: str) -> bool:
    """Whether what is asked, without phrases that only ask, is of whoever asks."""
    return ASKS.search(asked) is not None
