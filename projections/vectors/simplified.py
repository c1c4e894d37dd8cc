"""Traditional Chinese in its simplified form, so that one word is found and compared in both scripts.

Character by character, whatever stands beside it, so that a word has the same form in a question and in an item. What
stands for several characters (乾 and 幹 are 干) makes words alike that are not, as it does in the simplified script.
"""

from __future__ import annotations

import re
from functools import cache

_HAN = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF))
"""The characters that are looked at, and may come of it: Extension A, and the unified ideographs."""


def simplified(text: str) -> str:
    """The text with each traditional character, of Taiwan or Hong Kong, as it is written in simplified Chinese."""
    if text.isascii():
        return text
    table, traditional = _characters()
    return traditional.sub(lambda found: table[found[0]], text)


@cache
def _characters() -> tuple[dict[str, str], re.Pattern[str]]:
    """Each traditional character with its simplified one, by OpenCC, and the pattern of them all."""
    from opencc import OpenCC  # 30 ms: who has nothing but ASCII does without

    script = OpenCC("hk2s")
    characters = [chr(code) for first, last in _HAN for code in range(first, last + 1)]
    simple = script.convert(script.convert("\n".join(characters))).split("\n")  # twice: 薴 is 苧, and 苧 is 苎
    pairs = zip(characters, simple, strict=True)
    table = {character: other for character, other in pairs if character != other and _is_han(other)}
    return table, re.compile(f"[{''.join(table)}]")


def _is_han(text: str) -> bool:
    return len(text) == 1 and any(first <= ord(text) <= last for first, last in _HAN)
