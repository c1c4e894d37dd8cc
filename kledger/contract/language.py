"""The language of an answer: the one that is asked for, else the node's setting, else English."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal, get_args

from kledger.contract.errors import InvalidPayload

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
ENGLISH: Language = "en"
VARIABLE = "KLEDGER_LANGUAGE"
_WEIGHT = re.compile(r"\s*q\s*=\s*(0(\.\d{0,3})?|1(\.0{0,3})?)\s*")


def known_language(tag: str) -> Language | None:
    """Ours for `zh`, `zh-Hans-CN`, `zh_CN.UTF-8` or `EN-us`; None for a language in which there are no texts."""
    primary = re.split(r"[-_.@]", tag.strip(), maxsplit=1)[0].lower()
    return next((each for each in LANGUAGES if each == primary), None)


def accepted_language(header: str) -> Language | None:
    """The best of an `Accept-Language` header (RFC 9110, 12.5.4) in which there are texts; None where there is none."""
    best: tuple[float, Language] | None = None
    for part in header.split(","):
        tag, _, parameter = part.partition(";")
        weight = _WEIGHT.fullmatch(parameter) if parameter else None
        language = known_language(tag)
        if language is None or (parameter and weight is None):
            continue
        worth = float(weight[1]) if weight else 1.0
        if worth > 0 and (best is None or worth > best[0]):
            best = (worth, language)
    return best[1] if best else None


def language_of_locale(environment: Mapping[str, str] = os.environ) -> Language | None:
    """That of a terminal, by the locale of its messages; None where there are no texts in it, as in `C`."""
    named = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return known_language(next((locale for locale in named if locale), ""))


def language_of_node() -> Language:
    """The setting of this node. Raises InvalidPayload for a language in which there are no texts."""
    return _setting() or ENGLISH


def language_of_terminal() -> Language | None:
    """What somebody at a terminal asks for: by the setting, else by the locale; None leaves it to the node.

    Raises InvalidPayload.
    """
    return _setting() or language_of_locale()


def _setting() -> Language | None:
    stated = os.environ.get(VARIABLE, "").strip()
    language = known_language(stated)
    if stated and language is None:
        raise InvalidPayload(f"{VARIABLE} is {stated[:100]!r}: write {' or '.join(LANGUAGES)}")
    return language
