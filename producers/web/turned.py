"""Letters that a page would obey and not show: what turns or reorders a text, and what hides words in it.

A person who judges an item has to see what it says. So such letters are written as the command writes them (`\\u202e`),
in what is shown; the fields of forms and the addresses keep them, as they are what is sent.
"""

from __future__ import annotations

import re

# Embeddings, overrides and isolates; the tags of Unicode, but where they make one flag of a black one.
_LETTERS = "\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f"
_ANY = re.compile(f"[{_LETTERS}]")
_KEPT_OR_SHOWN = re.compile(
    f"(?P<kept><textarea\\b.*?</textarea>|<[^>]*>|\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f)|(?P<letter>[{_LETTERS}])",
    re.DOTALL,
)


def in_sight(markup: str) -> str:
    """Markup in which the texts between the tags show these letters as escapes."""
    return _KEPT_OR_SHOWN.sub(_shown, markup) if _ANY.search(markup) else markup


def _shown(found: re.Match[str]) -> str:
    if (kept := found["kept"]) is not None:
        return kept
    code = ord(found["letter"])
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
