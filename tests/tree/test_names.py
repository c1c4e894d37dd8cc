"""A name of a file or directory is safe everywhere, and no two ids share one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from producers.tree.names import id_of, name_of

_ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(_ids)
@example("../../etc/passwd")
@example("..")
@example("a/b\\c:d*?")
@example("CON")
@example("lpt1.json")
@example(".hidden")
@example("e\u0301")
@example("漢" * 200)
@example("ᄀ" + "ᅡ")
def test_a_name_is_one_safe_segment_that_leads_back_to_its_id(entity_id: str) -> None:
    name = name_of(entity_id)
    assert name not in ("", ".", "..")
    assert not set(name) & set('/\\:*?"<>|\0 ')
    assert name.isprintable()
    assert not name.startswith(".")
    assert not name.endswith(".")
    assert len(name.encode()) <= 200
    assert id_of(name) == (None if "~" in name else entity_id)


def folded(name: str) -> str:
    """What a file system makes of a name that does not tell cases or spellings apart."""
    return unicodedata.normalize("NFD", name).casefold()


@given(_ids, _ids)
@example("Ann", "ann")
@example("é", "e\u0301")
@example("가", "ᄀ" + "ᅡ")
@example("a" * 300, "a" * 301)
@example("straße", "strasse")
def test_two_ids_have_two_names_even_where_case_and_spelling_do_not_count(one: str, other: str) -> None:
    if one != other:
        assert folded(name_of(one)) != folded(name_of(other))


@pytest.mark.parametrize(
    ("name", "entity_id"), [("general_assistant", "general_assistant"), ("Ann", "Ann"), ("用户", "用户")]
)
def test_a_directory_that_a_person_named_stands_for_that_id(name: str, entity_id: str) -> None:
    assert id_of(name) == entity_id
