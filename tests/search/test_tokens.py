"""Which terms a text consists of, in English and Chinese."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import unicodedata
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.english import BASES
from projections.similar.tombstones import Words
from projections.vectors import tokens
from projections.vectors.simplified import simplified
from projections.vectors.tokens import (
    MOST_CHARACTERS,
    Sparse,
    document_terms,
    documents_terms,
    fragments_by_word,
    normalise,
    one_form,
    query_terms,
)


def terms(text: str, *, words_only: bool = True) -> set[int]:
    return set(query_terms(text, words_only=words_only).indices.tolist())


def weight_of(vector: Sparse, text: str) -> float:
    """What a document's vector gives to the words of `text`."""
    wanted = terms(text)
    pairs = zip(vector.indices.tolist(), vector.values.tolist(), strict=True)
    return float(sum(value for index, value in pairs if index in wanted))


def test_inflected_forms_are_one_word() -> None:
    assert terms("compressing files") == terms("compressed file")


def test_stop_words_say_nothing() -> None:
    assert terms("how do I list the files") == terms("list files")
    assert len(terms("what is the")) == 0


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u02bc", "\uff07"])
def test_what_an_apostrophe_shortens_says_nothing(apostrophe: str) -> None:
    def written(text: str) -> set[int]:
        return terms(text.replace("'", apostrophe), words_only=False)

    assert written("What's the team's plan") == written("what the team plan")
    assert written("I'm, we'd, they'll, you've, we're, it's") == written("I, we, they, you, we, it")
    assert written("It isn't, can't and doesn't compile") == written("it is, can and does compile")


def test_what_stands_in_quotes_is_no_shortened_word() -> None:
    assert normalise("sed 's/a/b/' and -m 'd', o'clock") == "sed 's/a/b/' and -m 'd', o'clock"


def test_full_width_and_capital_letters_are_plain_ones() -> None:
    assert normalise("ＧＩＴ　Ｌog") == "git log"
    assert terms("ＧＩＴ") == terms("git")


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Café Noir", "cafe noir"),
        ("Zoë, José and Łukasz", "Zoe, Jose and Lukasz"),
        ("Straße", "strasse"),
        ("Nguyễn", "nguyen"),
        ("e\u0301clair", "eclair"),
    ],
)
def test_a_letter_with_an_accent_is_its_letter(written: str, asked: str) -> None:
    assert terms(written, words_only=False) == terms(asked, words_only=False)


@pytest.mark.parametrize("kept", ["й", "が", "ご", "각", "ё"])
def test_marks_of_other_scripts_make_other_letters(kept: str) -> None:
    assert normalise(kept) == kept


@pytest.mark.parametrize("written", ["58,400", "1,234,567", "£58,400.50", "月薪58,400元"])
def test_a_number_is_found_with_and_without_its_separators(written: str) -> None:
    found = set(document_terms("", f"It is {written}").indices.tolist())
    digits = "".join(each for each in written.partition(".")[0] if each.isdigit())
    assert terms(digits) <= found
    assert terms(written.partition(".")[0]) <= found
    assert terms(digits) <= terms(written)


def test_numbers_of_a_list_are_found_one_by_one() -> None:
    found = set(document_terms("", "retry on 429,503 and 1234,567").indices.tolist())
    for number in ("429", "503", "1234", "567"):
        assert terms(number) <= found


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("16GB of RAM", "16 GB"),
        ("16 GB of RAM", "16GB"),
        ("at 9am", "9 am"),
        ("4 March", "March 4th"),
        ("72kg", "72 kg"),
    ],
)
def test_a_number_and_its_unit_are_two_words_however_they_are_written(written: str, asked: str) -> None:
    assert terms(asked) <= set(document_terms("", written).indices.tolist())


@pytest.mark.parametrize(("joined", "apart"), [("GPT4", "GPT 4"), ("iPhone15", "iPhone 15"), ("BA502", "ba 502")])
def test_a_name_that_ends_in_a_number_is_one_word_and_found_by_its_parts(joined: str, apart: str) -> None:
    assert len(terms(joined)) == 1
    assert terms(joined) | terms(apart) <= set(document_terms("", f"The {joined} is new").indices.tolist())
    assert terms(apart) < terms(joined, words_only=False)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        *(("E-4021", "E4021"), ("E-4021", "4021"), ("E4021", "4021"), ("RO-75G", "RO75G"), ("RO75G", "ro 75 g")),
        *(("UTF-8", "utf8"), ("COVID-19", "covid19"), ("09:15", "9:15"), ("2026-05-02", "2026-5-2"), ("000", "0")),
    ],
)
@pytest.mark.parametrize("around", ["It shows {} again", "型号{}的滤芯"])
def test_a_code_and_a_time_are_found_however_they_are_written(written: str, asked: str, around: str) -> None:
    found = set(document_terms("", around.format(written)).indices.tolist())
    assert terms(asked) <= found
    assert terms(written) <= found


@pytest.mark.parametrize(("written", "asked"), [("E4021", "E-4021"), ("RO75G", "RO-75G"), ("utf8", "UTF-8")])
def test_a_code_in_one_word_is_evidence_of_one_with_a_hyphen(written: str, asked: str) -> None:
    assert terms(written) < terms(asked, words_only=False)


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("getUserInfoById", "user info id"),
        ("parseDuration", "parse duration"),
        ("NullPointerException", "null pointer exception"),
        ("orderTimeoutMS2", "order timeout"),
        ("useInvoiceTotals()", "invoice totals"),
    ],
)
@pytest.mark.parametrize("around", ["Call {} twice", "接口{}会查缓存"])
def test_an_identifier_is_one_word_and_found_by_its_parts(identifier: str, parts: str, around: str) -> None:
    found = set(document_terms("", around.format(identifier)).indices.tolist())
    assert terms(identifier) | terms(parts) <= found
    assert len(terms(identifier)) == 1
    assert terms(parts) < terms(identifier, words_only=False)


@pytest.mark.parametrize("name", ["GitHub", "iPhone", "JavaScript", "PostgreSQL", "GPU", "McDonald", "eBay"])
def test_a_name_with_capitals_in_it_is_one_word(name: str) -> None:
    assert document_terms("", name).indices.tolist() == document_terms("", name.lower()).indices.tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *(
            ("colours", "colors"),
            ("favourite", "favorite"),
            ("organised", "organizes"),
            ("organisation", "organization"),
        ),
        *(("centre", "center"), ("cancelled", "cancel"), ("travelling", "traveled"), ("licences", "license")),
        *(("litres", "liter"), ("grey", "gray"), ("analysed", "analyzed"), ("synchronising", "synchronize")),
        ("organisation", "organization"),
    ],
)
def test_a_word_of_two_spellings_is_one(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize("word", ["rise", "promise", "exercise", "advise", "four", "hour", "tour", "true", "ogre"])
def test_a_word_that_only_looks_like_one_of_two_spellings_stays(word: str) -> None:
    assert word not in BASES


@pytest.mark.parametrize("text", ["v2", "x86", "a3f9c2", "k8s"])
def test_a_letter_before_a_number_is_no_name(text: str) -> None:
    fragments = {each for word in fragments_by_word(text) for each in word}
    assert terms(text, words_only=False) - fragments == terms(text)


@pytest.mark.parametrize(("written", "asked"), [("E-mail", "email"), ("co-founder", "cofounder"), ("Wi-Fi", "wifi")])
@pytest.mark.parametrize("around", ["Her {} is new", "家里的{}密码", "用{}，或者{}"])
def test_a_compound_is_found_as_one_word_and_by_its_parts(written: str, asked: str, around: str) -> None:
    found = set(document_terms("", around.format(*[written] * 2)).indices.tolist())
    assert terms(asked) <= found
    assert terms(written) <= found
    assert terms(asked) < terms(written, words_only=False)


@pytest.mark.parametrize("text", ["--dry-run", "state-of-the-art", "a-", "-a"])
def test_options_and_chains_are_no_compounds(text: str) -> None:
    assert terms(text) == terms(text.replace("-", " "))
    assert document_terms("", text).indices.tolist() == document_terms("", text.replace("-", " ")).indices.tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("bought", "buying"),
        ("I went there", "go there"),
        ("wrote", "writing"),
        ("children", "child"),
        ("mice", "mouse"),
    ],
)
def test_irregular_forms_are_one_word_too(one: str, other: str) -> None:
    assert terms(one) == terms(other)


@pytest.mark.parametrize(
    ("traditional", "simple"),
    [
        ("資料庫的連線為什麼斷開", "资料库的连线为什么断开"),
        ("頭髮和發票", "头发和发票"),
        ("我養了一隻貓", "我养了一只猫"),
    ],
)
def test_a_text_in_traditional_chinese_has_the_terms_of_the_simplified_one(traditional: str, simple: str) -> None:
    assert document_terms("", traditional).indices.tolist() == document_terms("", simple).indices.tolist()
    for of_stop_words in (True, False):
        told, meant = (query_terms(text, of_stop_words=of_stop_words) for text in (traditional, simple))
        assert told.indices.tolist() == meant.indices.tolist()


@given(st.text(alphabet=st.characters(min_codepoint=0x3400, max_codepoint=0x9FFF)))
def test_a_text_that_is_simplified_stays_as_it_is_and_each_character_is_one_wherever_it_stands(text: str) -> None:
    assert simplified(simplified(text)) == simplified(text) == "".join(map(simplified, text))
    assert len(simplified(text)) == len(text)


def test_characters_of_taiwan_and_of_hong_kong_are_simplified() -> None:
    assert simplified("裡裏 說説 衛衞 為爲 臺灣") == "里里 说说 卫卫 为为 台湾"


def test_chinese_words_are_pairs_of_characters() -> None:
    assert len(terms("压缩文件")) == 3
    assert terms("压缩") < terms("压缩文件")


def test_a_single_chinese_character_is_a_word() -> None:
    assert len(terms("我")) == 1


def test_both_languages_stand_in_one_text() -> None:
    assert terms("使用 git 提交") == terms("使用") | terms("git") | terms("提交")
    assert terms("使用git提交") == terms("使用 git 提交")


def test_words_that_stand_together_are_evidence_of_their_own() -> None:
    together, apart = document_terms("", "remote branch"), document_terms("", "remote. branch")
    assert len(together.indices) == len(apart.indices) + 1


def test_a_misspelt_word_shares_fragments_with_the_right_one() -> None:
    right, wrong = terms("kubernetes", words_only=False), terms("kubernetse", words_only=False)
    assert len(right & wrong) >= 4
    assert terms("kubernetes") & terms("kubernetse") == set()


def test_a_word_counts_less_with_each_repetition_and_in_a_longer_text() -> None:
    once = weight_of(document_terms("", "tar"), "tar")
    often = weight_of(document_terms("", "tar tar tar tar"), "tar")
    diluted = weight_of(document_terms("", "tar " + "other words that fill the page " * 20), "tar")
    assert once < often < 4 * once
    assert diluted < once


def test_a_weight_depends_on_no_other_document() -> None:
    first = document_terms("tar", "pack a folder")
    document_terms("zip", "something else " * 100)
    again = document_terms("tar", "pack a folder")
    assert np.array_equal(first.values, again.values)


@pytest.mark.parametrize("text", ["", "   ", "?!…", "。，、", "\n\n", "__", "\ud800"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    assert len(document_terms(text, text).indices) == 0
    assert len(query_terms(text).indices) == 0


def test_indices_are_unique() -> None:
    indices = document_terms("git: 版本控制", "git commit 提交 git commit 提交" * 50).indices
    assert len(indices) == len(np.unique(indices))


def test_terms_are_the_same_whatever_was_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Push with git-lfs.\nA 3rd of May", "push trial A", "getUserInfo 提交所有文件 16GB"]
    once = documents_terms(texts)
    monkeypatch.setattr(tokens, "_known", tokens._Known())
    monkeypatch.setattr(tokens, "_MOST_KNOWN", 0)  # what is known begins anew each time
    for vectors in (documents_terms(texts), [documents_terms([text])[0] for text in texts], documents_terms(texts)):
        assert [(each.indices.tolist(), each.values.tolist()) for each in vectors] == [
            (each.indices.tolist(), each.values.tolist()) for each in once
        ]
    assert len(tokens._known) <= 1


def test_terms_are_the_same_in_every_process() -> None:
    program = (
        "from projections.vectors.tokens import document_terms; import hashlib;"
        "v = document_terms('git: 版本控制', 'commit all files, 提交所有文件');"
        "print(hashlib.sha256(v.indices.tobytes() + v.values.tobytes()).hexdigest())"
    )
    root = Path(__file__).parents[2]
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


@pytest.mark.parametrize(
    "text",
    ["a" * 1_000_000, "\ufdfa" * 340_000, "e" + "\u0301\u0323" * 250_000, "王" * 340_000, "a " * 500_000],
    ids=["one word", "characters with long plain forms", "accents", "one script", "many words"],
)
def test_a_text_as_large_as_an_event_is_searched_by_its_beginning(text: str) -> None:
    assert len(normalise(text)) <= MOST_CHARACTERS
    found = document_terms("a spare valve", text)
    assert len(found.indices) <= 3 * MOST_CHARACTERS
    assert terms("valve") <= set(found.indices.tolist())


def test_many_combining_marks_are_normalised_in_pieces_wherever_words_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []

    class _Counted:
        @staticmethod
        def normalize(form: Literal["NFKC"], piece: str) -> str:
            lengths.append(len(piece))
            return unicodedata.normalize(form, piece)

    monkeypatch.setattr(tokens, "unicodedata", _Counted)
    marks = "e" + "\u0301\u0323" * 100_000
    for compared in (normalise, one_form, lambda text: Words("a task", text).whole):
        lengths.clear()
        compared(marks)
        assert max(lengths) <= 1_000
        assert sum(lengths) >= MOST_CHARACTERS


def test_nothing_else_normalises_a_text_to_compare_its_words() -> None:
    root = Path(tokens.__file__).parents[2]
    product = [path for part in ("kledger", "ledger", "producers", "consumers", "projections")
               for path in (root / part).rglob("*.py")]  # fmt: skip
    found = [path.relative_to(root).as_posix() for path in product if "unicodedata.normalize" in path.read_text()]
    assert found == ["projections/vectors/tokens.py"]


@pytest.mark.parametrize(
    "unit",
    [
        *("a", "aB", "a1", "1", "王", "é", "-", "'", ",", "A ", "a-", "1-", "a1-", "1,", "1 ", "1/", "(1", "+1"),
        "1.1.",
        *("5月", "2026-", "2026-05-", "3 may ", "may ", "3rd of ", "first we ", "我们"),
    ],
)
def test_no_text_costs_more_than_its_length_whatever_is_repeated_in_it(unit: str) -> None:
    """Beside as many characters of plain words: of a pattern that goes back over a long run, it was 400 times."""
    hostile = "vitamin A " + unit * (20_000 // len(unit)) + " A"
    plain = "bake bread in a hot oven and let it rest " * 500

    def took(text: str) -> float:
        began = time.thread_time()
        document_terms("", text)
        return time.thread_time() - began

    assert min(took(hostile) for _ in range(2)) < 50 * min(took(plain) for _ in range(2))


@pytest.mark.parametrize("text", ["cafe\u0301 ", "か\u3099き ", "数据库e\u0301每天", "ﾊﾞｰ, "])
def test_a_text_that_is_normalised_in_pieces_is_what_it_would_be_as_a_whole(text: str) -> None:
    for shift in range(12):
        whole = "x" * shift + text * 500
        assert one_form(whole) == unicodedata.normalize("NFKC", whole)


def test_a_weight_is_that_of_bm25_for_the_kind_of_the_term() -> None:
    """As k1, b and the usual number of terms of each kind say, by hand."""
    twice = document_terms("", "tar tar 王")
    stem = weight_of(twice, "tar")
    assert stem == pytest.approx(2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 2 / 50)))
    character = weight_of(twice, "王")
    assert character == pytest.approx(1 * 1.6 / (1 + 0.6 * (0.6 + 0.4 * 1 / 50)))


WORDS = st.text(alphabet="ab cd 王压缩文件 .\n,Ｇü" + "the of and git", max_size=60)


@given(texts=st.lists(WORDS, max_size=5))
def test_documents_that_are_read_together_have_the_terms_of_each(texts: list[str]) -> None:
    together = documents_terms(texts)
    assert len(together) == len(texts)
    for text, vector in zip(texts, together, strict=True):
        alone = document_terms(*text.split("\n", 1)) if "\n" in text else documents_terms([text])[0]
        assert vector.indices.tolist() == sorted(alone.indices.tolist())
        assert vector.values.tolist() == alone.values.tolist()
        asked = terms(text, words_only=False)
        assert asked <= set(vector.indices.tolist())
        if BASES.keys().isdisjoint(re.findall("[a-z]+", normalise(text))):  # of got, a document has the letters too
            assert asked == set(vector.indices.tolist())
