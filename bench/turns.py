"""Recall over conversations: `python -m bench.turns`. One item a turn, each conversation in a scope of its own.

Prints recall at 5 and 10 and the mean reciprocal rank at 10 of the turn that answers, by language and by the form of
the question (bench/conversations.py), alone and with what stands beside each hit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.conversation_words import Language
from bench.conversations import Conversation, conversations, items, scope
from bench.recall import FIGURES, Embedding, Engine, Quality, Query, Search, evaluate

By = Callable[[Conversation], Search]
"""The search in one conversation."""

LANGUAGES: tuple[Language, ...] = ("en", "zh")
FORMS = ("near", "told", "other")


def engine_of(told: Iterable[Conversation], folder: Path, embedder: Embedding | None = None) -> Engine:
    """All conversations in one engine."""
    return Engine(folder, [item for conversation in told for item in items(conversation)], embedder)


def quality(told: Iterable[Conversation], by: By, forms: Iterable[str] = FORMS) -> Quality:
    """The quality over all questions of these forms, each asked in its conversation."""
    wanted = frozenset(forms)
    parts = []
    for conversation in told:
        asked = [each for each in conversation.questions if each.form in wanted]
        queries = [Query(each.text, frozenset({each.evidence}), conversation.language) for each in asked]
        parts.append(evaluate(by(conversation), queries))
    count = sum(part.queries for part in parts)
    r5, r10, mrr10 = (sum(part.figures()[at] * part.queries for part in parts) / count for at in range(3))
    return Quality(r5, r10, mrr10, count)


def measure() -> dict[tuple[Language, str], dict[str, Quality]]:
    """For each language and way (without and with neighbours), the quality of all questions and of each form."""
    table: dict[tuple[Language, str], dict[str, Quality]] = {}
    for language in LANGUAGES:
        told = list(conversations(language))
        with tempfile.TemporaryDirectory() as folder:
            engine = engine_of(told, Path(folder))
            try:
                for way, by in ways(engine).items():
                    forms = {"all": FORMS} | {form: (form,) for form in FORMS}
                    table[language, way] = {name: quality(told, by, each) for name, each in forms.items()}
            finally:
                engine.close()
    return table


def ways(engine: Engine) -> dict[str, By]:
    """The searches that are compared."""

    def alone(conversation: Conversation) -> Search:
        return engine.by("fused", scope(conversation))

    def neighbours(conversation: Conversation) -> Search:
        beside: dict[str, list[tuple[str, bool]]] = {}
        for one, other in pairwise(conversation.turns):
            if one.session == other.session:
                beside.setdefault(one.id, []).append((other.id, False))
                beside.setdefault(other.id, []).append((one.id, True))
        return engine.by("fused", scope(conversation), beside)

    return {"alone": alone, "neighbours": neighbours}


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`."""
    return [
        {
            "row": f"recall, conversations, {language}, {way}: {name}",
            "ours": figure,
            "raw": None,
            "unit": "",
            "ratio": None,
            "target": None,
            "note": f"{forms['all'].queries} questions, one item a turn",
        }
        for (language, way), forms in measure().items()
        for name, figure in zip(FIGURES, forms["all"].figures(), strict=True)
    ]


def main() -> None:
    """Print the table."""
    print(f"{'language':<10} {'way':<12} {'questions':<10} {'R@5':>6} {'R@10':>6} {'MRR@10':>7}")
    for (language, way), forms in measure().items():
        for form, each in forms.items():
            print(f"{language:<10} {way:<12} {form:<10} " + " ".join(f"{figure:6.3f}" for figure in each.figures()))


if __name__ == "__main__":
    main()
