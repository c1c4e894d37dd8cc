"""What a text became is told word by word, whatever the texts are, within a bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from producers.web.differences import MOST, Part, differences

_TEXTS = st.text(alphabet=st.sampled_from([*"ab 的数据，.\n\t", "Ä", "👍", "\x00"]), max_size=60)


def test_words_that_were_replaced_stand_beside_those_that_took_their_place() -> None:
    assert differences("Deploy at night.", "Deploy on Tuesday.") == [
        Part("same", "Deploy "),
        Part("removed", "at night"),
        Part("added", "on Tuesday"),
        Part("same", "."),
    ]


def test_chinese_is_compared_by_character() -> None:
    assert differences("迁移前备份数据", "迁移后备份数据") == [
        Part("same", "迁移"),
        Part("removed", "前"),
        Part("added", "后"),
        Part("same", "备份数据"),
    ]


def test_indentation_counts_and_blanks_between_words_do_not() -> None:
    assert [kind for kind, _ in differences("if x:\n  y", "if x:\n    y")] == ["same", "removed", "added", "same"]
    assert differences("one  two", "one two ") == [Part("same", "one two ")]


@given(_TEXTS, _TEXTS)
def test_both_texts_can_be_read_from_the_difference(before: str, after: str) -> None:
    parts = differences(before, after)
    assert "".join(text for kind, text in parts if kind in ("same", "added")) == after
    was = "".join(text for kind, text in parts if kind in ("same", "removed"))
    assert was.split() == before.split() or "".join(was.split()) == "".join(before.split())


@given(_TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert differences(text, text) == ([Part("same", text)] if text else [])


def test_a_text_of_a_megabyte_is_cut_and_too_many_changes_are_told_as_one() -> None:
    parts = differences("的一是" * 350_000, "一的在 了" * 250_000)
    assert [(kind, len(text)) for kind, text in parts] == [("removed", MOST), ("added", MOST), ("cut", 0)]
