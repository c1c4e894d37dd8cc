"""The policy of a recall names every setting that ranks."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from kledger.contract import recall
from projections import words
from projections.search import asked_differently, match, model_rerank, ranking, rerank, whose
from projections.search import policy as named
from projections.vectors.embedding import weights
from projections.vectors.store.directories import FORMAT

MODULES = (match, whose, ranking, rerank, model_rerank, asked_differently, weights, recall)
NO_SETTING_OF_RANKING = {"MOST_RECALLED", "MOST_RECALLS_LISTED", "MOST_CHARACTERS"}
"""Bounds of what may be asked for, and of what is read."""


def numbers(module: ModuleType) -> list[tuple[ModuleType, str]]:
    """The settings of a module that are numbers, without those that it imports."""
    return [
        (module, name)
        for name, value in vars(module).items()
        if name.isupper() and not name.startswith("_") and isinstance(value, int | float)
        if name not in NO_SETTING_OF_RANKING and (module is weights or not hasattr(weights, name))
    ]


def name_now() -> str:
    """The name of what ranks with a reranker, as the settings are now."""
    return named.with_reranker(named.policy.__wrapped__("m"), "r")


SETTINGS = [one for module in MODULES for one in numbers(module)]


@pytest.mark.parametrize(("module", "name"), SETTINGS, ids=[name for _, name in SETTINGS])
def test_another_value_of_a_setting_is_another_policy(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str
) -> None:
    before = name_now()
    for place in (module, named):
        if hasattr(place, name):
            monkeypatch.setattr(place, name, getattr(module, name) / 2)
    assert name_now() != before


def test_other_words_are_another_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "background.npz"
    other.write_bytes(match.BACKGROUND.read_bytes()[:-1])
    for module, name, value in (
        (words, "STOP_WORDS", words.STOP_WORDS - {"the"}),
        (words, "STOP_CHARACTERS", words.STOP_CHARACTERS - {"的"}),
        (match, "BACKGROUND", other),
        (named, "FORMAT", FORMAT + 1),
    ):
        before = name_now()
        with monkeypatch.context() as patched:
            patched.setattr(module, name, value)
            assert name_now() != before


def test_another_model_of_the_vectors_is_another_policy() -> None:
    assert named.policy("one") != named.policy("other")
    assert named.with_reranker("one", "r") != named.with_reranker("one", "s")
