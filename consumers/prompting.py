"""What is a model told to do? The prompts of each task, as text in a folder; their version is kept with each answer.

The prompt of an extraction is the one that the doors hand out (`GET /api/prompts/knowledge_extraction`), so that an
agent that extracts by itself is told what the ledger's own model is told. A version follows from the words.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from consumers.model import Prompt
from ledger.prompts import prompt as handed_out

_FILES = Path(__file__).parent / "prompts"


@cache
def _rules(name: str) -> tuple[str, str]:
    """The version and the words of one file."""
    rules = (_FILES / f"{name}.md").read_text(encoding="utf-8").strip()
    return f"{name}-{hashlib.sha256(rules.encode()).hexdigest()[:12]}", rules


def prompt(name: str, text: str) -> Prompt:
    """The rules of `prompts/{name}.md` over some material."""
    version, rules = _rules(name)
    return Prompt(version, rules, text)


def extraction_prompt(text: str) -> Prompt:
    """The rules that are handed out over some material: the Chinese ones where there is Chinese in it."""
    chinese = any("\u4e00" <= char <= "\u9fff" for char in text)
    rules = handed_out("knowledge_extraction", "zh" if chinese else "en")
    return Prompt(rules.version, rules.text, text)
