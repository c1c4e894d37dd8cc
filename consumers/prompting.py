"""What is a model told to do? The prompts of each task, as text in a folder; their version is kept with each answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from consumers.model import Prompt

_FILES = Path(__file__).parent / "prompts"


@cache
def _rules(name: str) -> tuple[str, str]:
    """The version and the words of one file: its first line is `version: NAME`."""
    first, _, rules = (_FILES / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    return first.removeprefix("version:").strip(), rules.strip()


def prompt(name: str, text: str) -> Prompt:
    """The rules of `prompts/{name}.md` over some material."""
    version, rules = _rules(name)
    return Prompt(version, rules, text)
