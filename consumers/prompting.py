"""Prompts of the node's own model tasks, from text files; their version is recorded with each answer.

The prompt of an extraction is the one that the interfaces publish (`GET /api/prompts/knowledge_extraction`), so an
agent that extracts by itself gets the same instructions as the ledger's model. A version is a hash of the text.
"""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path

from consumers.model import Prompt
from kledger.contract.language import ENGLISH
from ledger.prompts import language_of
from ledger.prompts import prompt as published_prompt

_FILES = Path(__file__).parent / "prompts"


@cache
def _rules(name: str) -> tuple[str, str]:
    """The version and the text of one file."""
    rules = (_FILES / f"{name}.md").read_text(encoding="utf-8").strip()
    return f"{name}-{hashlib.sha256(rules.encode()).hexdigest()[:12]}", rules


def prompt(name: str, text: str) -> Prompt:
    """A prompt with the rules of `prompts/{name}.md` and some material."""
    version, rules = _rules(name)
    return Prompt(version, rules, text)


def extraction_prompt(text: str) -> Prompt:
    """A prompt with the published extraction rules and some material; in Chinese if the material has Chinese text."""
    rules = published_prompt("knowledge_extraction", language_of(text) or ENGLISH)
    return Prompt(rules.version, rules.text, text)


def element(tag: str, text: str, among: str = "", **named: str) -> str:
    """A text between tags, which nothing in it closes: neither its own nor those of `among`, names with bars between.

    Whoever may have a text saved would otherwise speak in the name of another in the prompt: as somebody else's
    message, or as the owner's feedback. `named` are attributes of the tag.
    """
    attributes = "".join(f" {name}={json.dumps(value, ensure_ascii=False)}" for name, value in named.items())
    within = _closing(f"{tag}|{among}" if among else tag).sub("‹", f"{attributes}>\n{text}")
    return f"<{tag}{within}\n</{tag}>"


@cache
def _closing(tags: str) -> re.Pattern[str]:
    """The first character of what closes one of these tags."""
    return re.compile(rf"<(?=\s*/\s*(?:{tags})\b)", re.IGNORECASE)
