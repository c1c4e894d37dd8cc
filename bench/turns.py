"""Recall over conversations: `python -m bench.turns`. One item a turn, each conversation in a scope of its own.

Prints recall at 5 and 10 and the mean reciprocal rank at 10 of the turn that answers, by language and by the form of the
question (bench/conversations.py).
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.conversations import Conversation, Language, conversations, items, scope
from bench.recall import FIGURES, Engine, Quality, Query, Search, evaluate

By = Callable[[Conversation], Search]
"""The search in one conversation."""

LANGUAGES: tuple[Language, ...] = ("en", "zh")
FORMS = ("near", "told", "other")


def engine_of(told: Iterable[Conversation], folder: Path) -> Engine:
    """All conversations in one engine."""
    return Engine(folder, [item for conversation in told for item in items(conversation)])


def quality(told: Iterable[Conversation], by: By, forms: Iterable[str] = FORMS) -> Quality:
    """The quality over all questions of these forms, each asked in its conversation."""
    wanted = frozenset(forms)
    parts = []
    for conversation in told:
        asked = [each for each in conversation.questions if each.form in wanted]
        queries = [Query(each.text, frozenset({each.evidence}), conversation.language) for each in asked]
        parts.append(evaluate(by(conversation), queries))
    count = sum(part.queries for part in parts)
    means = (statistics.fmean(part.figures()[at] for part in parts for _ in range(part.queries)) for at in range(3))
    return Quality(*means, queries=count)


def measure() -> dict[str, dict[str, Quality]]:
    """For each language, the quality of all questions and of each form."""
    table: dict[str, dict[str, Quality]] = {}
    for language in LANGUAGES:
        told = list(conversations(language))
        with tempfile.TemporaryDirectory() as folder:
            engine = engine_of(told, Path(folder))
            try:
                table[language] = _by_form(told, lambda each, engine=engine: engine.by("fused", scope(each)))  # type: ignore[misc]
            finally:
                engine.close()
    return table


def _by_form(told: list[Conversation], by: By) -> dict[str, Quality]:
    return {"all": quality(told, by)} | {form: quality(told, by, [form]) for form in FORMS}


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`."""
    return [
        {
            "row": f"recall, conversations, {language}: {name}",
            "ours": figure,
            "raw": None,
            "unit": "",
            "ratio": None,
            "target": None,
            "note": f"{forms['all'].queries} questions, one item a turn",
        }
        for language, forms in measure().items()
        for name, figure in zip(FIGURES, forms["all"].figures(), strict=True)
    ]


def main() -> None:
    """Print the table."""
    print(f"{'language':<10} {'questions':<10} {'R@5':>6} {'R@10':>6} {'MRR@10':>7}")
    for language, forms in measure().items():
        for form, each in forms.items():
            print(f"{language:<10} {form:<10} " + " ".join(f"{figure:6.3f}" for figure in each.figures()))


if __name__ == "__main__":
    main()
