"""The estimate of tokens against two real vocabularies, whose counts of three texts are recorded here."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from ledger.sessions import tokens
from ledger.sessions.tokens import counter_for, estimate

CORPORA = Path(__file__).parent / "corpora"
# tiktoken 0.14.0, `encode_ordinary`, with the vocabularies o200k_base and cl100k_base.
REAL = {
    ("english", "o200k"): 1_902,
    ("english", "cl100k"): 1_900,
    ("chinese", "o200k"): 1_132,
    ("chinese", "cl100k"): 1_515,
    ("code", "o200k"): 2_338,
    ("code", "cl100k"): 2_336,
}


@pytest.mark.parametrize(("corpus", "vocabulary"), REAL)
def test_the_estimate_is_within_a_tenth_of_a_real_tokenizer(corpus: str, vocabulary: str) -> None:
    text = (CORPORA / f"{corpus}.txt").read_text("utf-8")
    assert estimate(text, vocabulary) == pytest.approx(REAL[corpus, vocabulary], rel=0.10)


def test_a_long_text_is_estimated_by_samples_of_it() -> None:
    text = (CORPORA / "english.txt").read_text("utf-8")
    assert estimate(text * 50) == pytest.approx(50 * estimate(text), rel=0.10)


def test_nothing_costs_nothing_and_anything_at_least_one_token() -> None:
    assert (estimate(""), estimate(" "), estimate("。")) == (0, 1, 1)


@pytest.mark.parametrize(
    ("model", "vocabulary"), [("gpt-4-turbo", "cl100k"), ("gpt-4o", "o200k"), ("claude", "o200k"), (None, "o200k")]
)
def test_a_model_is_counted_by_its_vocabulary(model: str | None, vocabulary: str) -> None:
    assert counter_for(model).name == f"estimate-{vocabulary}"


def test_a_tokenizer_without_its_vocabulary_on_this_machine_is_not_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def imported(_name: str) -> None:
        raise AssertionError("it would load the vocabulary from elsewhere")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with monkeypatch.context() as patched:
        patched.setattr(importlib, "import_module", imported)
        assert tokens._tokenizer("o200k") is None
