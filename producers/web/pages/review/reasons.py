"""Reasons that the node gives for what it left or chose, in the language of the reader; others as they are."""

from __future__ import annotations

import re

from producers.web.words import Words

REASONS = (
    ("(?P<id>.+) has changed since it was compared", "{id} has changed since it was compared"),
    (
        "its items refer to more than (?P<most>[0-9,]+) resources together",
        "its items refer to more than {most} resources together",
    ),
    ("(?P<id>.+) is not .+'s any more", "{id} is owned by somebody else now"),
    ("(?P<id>.+) has another owner now", "{id} is owned by somebody else now"),
    ("others kept writing to its items", "others kept writing to its items"),
    ("(?P<id>.+) has changed since it took the others in", "{id} has changed since it took the others in"),
    ("(?P<id>.+) was erased with the person it belonged to", "{id} was erased with the person it belonged to"),
    ("what (?P<id>.+) said before was erased", "what {id} said before was erased"),
    (
        r"(?P<id>\S+) is to take the place of (?P<other>\S+), and is less sure by (?P<share>[\d.]+)",
        "{id} is to take the place of {other}, and is less sure by {share}",
    ),
    (
        r"(?P<id>\S+) is to take the place of (?P<other>\S+), which (?P<owner>\S+) owns",
        "{id} is to take the place of {other}, which {owner} owns",
    ),
    (
        "the best item of each group is kept as it is: all its items say the same word for word",
        "the best item of each group is kept as it is: all its items say the same word for word",
    ),
    (
        "the best item of each group is kept as it is: no model is configured",
        "the best item of each group is kept as it is: no model is configured",
    ),
)
"""How a reason reads, and its text."""


def reason_told(reason: str, words: Words) -> str:
    """A reason in words."""
    for form, text in REASONS:
        if found := re.fullmatch(form, reason, re.DOTALL):
            return words(text, **found.groupdict())
    return reason
