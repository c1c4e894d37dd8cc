"""Prompt library: the prompts that the product hands out, in Chinese and English.

A prompt is `<name>.<language>.md` in this folder; its first line is its title and its second its description, as
comments. Its version is computed from its text, so that a stored answer names the exact text of its prompt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kledger.contract.errors import UnknownPrompt
from kledger.contract.language import ENGLISH, LANGUAGES, Language


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt in one language. `version` is 12 hexadecimal digits of the SHA-256 of its text."""

    name: str
    language: Language
    title: str
    description: str
    version: str
    text: str


@cache
def prompt_names() -> tuple[str, ...]:
    """The names of all prompts, sorted."""
    return tuple(sorted({each.name.split(".")[0] for each in files(__name__).iterdir() if each.name.endswith(".md")}))


@cache
def prompt(name: str, language: Language = ENGLISH) -> Prompt:
    """A prompt by name and language. Raises UnknownPrompt."""
    if name not in prompt_names() or language not in LANGUAGES:
        raise UnknownPrompt(
            f"there is no prompt {name[:100]!r} in {language!r}: there are {', '.join(prompt_names())}, "
            f"each in {' and '.join(LANGUAGES)}",
            name=name,
        )
    title, description, text = (files(__name__) / f"{name}.{language}.md").read_text("utf-8").split("\n", 2)
    text = text.strip() + "\n"
    version = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Prompt(name, language, _comment(title), _comment(description), version, text)


def language_of(text: str) -> Language | None:
    """Chinese for a text with a Chinese character; None where nothing tells, as of a command or a name."""
    return "zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else None


def _comment(line: str) -> str:
    return line.removeprefix("<!--").removesuffix("-->").strip()
