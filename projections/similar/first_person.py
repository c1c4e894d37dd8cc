"""Whether a text speaks in the first person: what it says is then of whoever says it."""

from __future__ import annotations

import re

FIRST_PERSON = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Mm]ine|[Ww]e|[Uu]s|[Oo]urs?)\b|[我俺咱]")


def speaks_of_itself(text: str) -> bool:
    """Whether whoever says a text says *I* or 我 in it."""
    return FIRST_PERSON.search(text) is not None
