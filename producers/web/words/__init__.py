"""Words of the pages, in English and Chinese: each text is written in English, and zh.*.json has it in Chinese.

English has another form where `n` is one: en.one.json has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import orjson

from kledger.contract.language import Language

Words = Callable[..., str]
"""`words("{n} items", n=3)` in the language of the reader."""


@cache
def chinese() -> Mapping[str, str]:
    """Every text in Chinese, by its English form."""
    found: dict[str, str] = {}
    for file in sorted(Path(__file__).parent.glob("zh.*.json")):
        found |= orjson.loads(file.read_bytes())
    return found


@cache
def of_one() -> Mapping[str, str]:
    """The English form of texts where `n` is one."""
    found: dict[str, str] = orjson.loads((Path(__file__).parent / "en.one.json").read_bytes())
    return found


@cache
def words_of(language: Language) -> Words:
    """The words in a language; a text that has no Chinese form yet is shown in English."""
    texts = chinese() if language == "zh" else {}
    one = texts if language == "zh" else of_one()

    def words(text: str, **values: object) -> str:
        found = (one if values.get("n") in (1, "1") else texts).get(text, text)
        return found.format(**values) if values else found

    return words
