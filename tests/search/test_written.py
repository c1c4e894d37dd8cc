"""Dates, telephone numbers, codes of several parts and names such as vitamin A are found however they are written."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from projections.search.match import covered, passages, weighed
from projections.vectors.tokens import document_terms, normalise, query_terms
from projections.words import words_of
from projections.written import apart

_SAID = (
    *("2026-08-09", "9 August 2026", "August 9, 2026", "9th of August 2026", "Aug 9 2026"),
    *("2026年8月9日", "2026年8月9號", "9.8.2026", "2026/8/9", "2026.08.09", "2026-8-9"),
)
_NUMBERS = ("+44 20 7946 0018", "+44 (0)20 7946-0018", "+44.20.7946.0018", "+442079460018", "0044 20 7946 0018")

_WORDS = (
    *("a", "may", "may be", "may,", "june", "of", "3rd", "3", "12", "2026", "2026,", "5月3日", "2026年5月3日", "5月"),
    *("+49", "(0)30", "30", "5557", "812", "030/5557812", "123", "(", ")", "-", ".", "/", "RO-75G", "BR-009-V9", "-V9"),
    *("16GB", "58,400", "9:15", "\n", "\u3000", "资料", "e-mail", "x", "3.5.2026", "2026-05-03", "2026/5/3", "٣", "st"),
)
_TEXTS = st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from([" ", "  ", "", ", ", "-", "/", ". "]))).map(
    lambda words: "".join(map("".join, words))
)


def match(question: str, item: str) -> float:
    return covered(weighed(question), passages("", item))


@pytest.mark.parametrize(("asked", "written"), list(itertools.permutations(_SAID, 2)))
def test_a_date_is_found_in_every_form(asked: str, written: str) -> None:
    assert match(f"who comes on {asked}", f"Ines comes {written}, Paul stays") >= 0.75


@pytest.mark.parametrize("asked", ["2026-08-09", "9 August", "Aug 9th", "8月9日", "8月9号"])
def test_a_day_of_a_month_is_nearer_than_another_day_of_it(asked: str) -> None:
    day, others = (
        match(asked, "Concert on August 9."),
        [match(asked, f"Concert {at}") for at in ("19 August", "9月8日")],
    )
    assert day > 1.4 * max(others)


@pytest.mark.parametrize("asked", ["August", "2026", "the 9th", "8月", "concert in August 2026"])
@pytest.mark.parametrize(
    "written", ["Concert on 9 August 2026", "concert 2026-08-09", "Concert: 2026年8月9日", "Concert 9.8.2026"]
)
def test_a_part_of_a_date_is_found(asked: str, written: str) -> None:
    if not ("月" in asked and "月" not in written):
        assert match(asked, written) >= 0.5


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("step 3 may be left out", "3 May"),
        ("from 10:15 to 11:45, may 3:30", "3 May"),
        ("release 11.2026.8.9", "2026-08-09"),
        ("12026-08-091", "2026-08-09"),
        ("march 400 miles", "4 March"),
        ("2026-13-05, 2026-00-05, 2026-05-32", "2026-05-03"),
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str, date: str) -> None:
    asked = set(query_terms(date, words_only=True).indices.tolist())
    assert not asked <= set(document_terms("", text).indices.tolist())


@pytest.mark.parametrize(("asked", "written"), list(itertools.permutations(_NUMBERS, 2)))
def test_a_telephone_number_is_found_in_every_form(asked: str, written: str) -> None:
    if (asked[:2] == "00") == (written[:2] == "00"):
        assert match(asked, f"Reception of the museum: {written}.") >= 0.5


@pytest.mark.parametrize(
    "asked", ["02079460018", "020 7946 0018", "020-79460018", "(020) 7946 0018", "7946 0018", "79460018"]
)
@pytest.mark.parametrize("written", ["+44 20 7946 0018", "0044 20 7946-0018", "+44 (20) 7946.0018"])
def test_a_telephone_number_is_found_as_it_is_within_its_country(asked: str, written: str) -> None:
    assert match(asked, f"Reception of the museum: {written}.") >= 0.5


def test_another_telephone_number_is_not_found() -> None:
    assert match("02079460018", "Reception: +44 20 7946 0081") < 0.4 * match(
        "02079460018", "Reception: +44 20 7946 0018"
    )


def test_numbers_of_a_list_and_of_an_address_are_found_one_by_one() -> None:
    numbers = "1998 2004 2010 2016 2022"
    assert all(match(f"{year} games", f"games of {numbers}") >= 0.8 for year in numbers.split())
    assert match("games 2004 2010", "the games were in 2010, and in 2004 too") >= 0.5
    assert match("10.20.30.40 gateway", "gateway 10.20.30.40") >= 0.9
    assert len(document_terms("", " ".join(map(str, range(1000, 3000)))).indices) > 2000


@pytest.mark.parametrize("code", ["KX-204-P", "7B-33-Q9", "AB-2025-0117", "CVE-2019-11510", "us-east-2"])
def test_a_code_of_several_parts_is_found_in_one_word_and_by_its_parts(code: str) -> None:
    joined = code.replace("-", "")
    assert match(joined, f"Spare part {code} is in stock") >= 0.8
    assert match(code, f"Spare part {joined} is in stock") >= 0.4
    assert match(code.replace("-", " "), f"Spare part {code} is in stock") >= 0.6
    assert match(code, f"Spare part {code} is in stock") > 0.999


def test_a_letter_that_names_one_of_several_is_no_article() -> None:
    asked = "Who leads group A?"
    assert match(asked, "Group A is led by Rosa, group leads meet") > match(asked, "Group B leads meet") + 0.2


@pytest.mark.parametrize("text", ["A dog barked. A cat ran", "give me A's list", "IT WAS A BAD DAY"])
def test_an_article_in_capitals_is_none(text: str) -> None:
    assert not set(query_terms("group A", of_stop_words=False).indices.tolist()) & set(
        query_terms(text, of_stop_words=False).indices.tolist()
    )


@given(_TEXTS)
@example("it is due on the 3rd of may, 2026")
@example("of 3 may have")
@example("on the 3rd of may be sure")
@example("call +49 ( 30 ) 5557 812 or")
def test_a_text_that_is_read_piece_by_piece_says_what_it_says_as_a_whole(text: str) -> None:
    plain = normalise(text)
    assert " ".join(apart(plain)) == plain
    assert [word for piece in apart(plain) for word in words_of(piece)] == list(words_of(plain))
