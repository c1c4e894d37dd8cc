"""Words of a text with their hashed terms: stems, fragments and pairs, and what a date, a number or a code says.

The terms are stable across processes.
"""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from projections.english import BASES
from projections.english import stem as stem_of
from projections.written import CODE, DATE, GROUPED, MONTHS, date_of, grouped

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_STOPS = ".:;!?\n\u3002"
_LETTERS = rf"[^\W\d_{CJK}]+"
_NUMBER = r"\d{1,3}(?:,\d{3})+(?!\d)"  # 58,400
# e-mail; Chinese characters beside it are words of their own
# and RO-75G, E-4021: letters, a hyphen, digits and perhaps letters
_COMPOUND = rf"(?<![^\W{CJK}])(?<!-){_LETTERS}-(?:{_LETTERS}|\d+(?:{_LETTERS})?)(?![^\W{CJK}]|-)"
_PIECE = re.compile(rf"[{CJK}]+|{_COMPOUND}|[^\W_{CJK}]+|[{_STOPS}]")
# of a text with digits, in a third more time
_PIECE_OR_NUMBER = re.compile(rf"[{CJK}]+|{DATE}|{GROUPED}|{_NUMBER}|{CODE}|{_COMPOUND}|[^\W_{CJK}]+|[{_STOPS}]")
_DATE, _GROUPED, _CODED, _DIGIT = map(re.compile, (DATE, GROUPED, CODE, r"\d"))
_MEASURE = re.compile(rf"(\d+)({_LETTERS})")  # 16GB
_MODEL = re.compile(rf"({_LETTERS}(?<=..))(\d+)({_LETTERS})?")  # RTX4090; of one letter, as v2, the letter says nothing
_CODE = re.compile(r"[a-z](\d{3,})")  # E4021, of which 4021 says enough
# getUserInfo, NullPointerException; not GitHub and iPhone, which are one word
_IDENTIFIER = re.compile(
    r"(?<![A-Za-z0-9])(?:[a-z]{2,}(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){3,})(?:[A-Z]+\d*)?(?![A-Za-z0-9])"
)
# trial A, vitamin A; not the article
_LETTER_A = re.compile(r"(?<![A-Za-z0-9])([A-Za-z0-9]*[a-z0-9]) A(?![^\W_]|['\u2019&])")
_HUMPED = re.compile("[a-z0-9][A-Z][a-z0-9]")
_HUMP = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_ORDINALS = frozenset(("st", "nd", "rd", "th"))
_IS_CJK = re.compile(f"[{CJK}]").match
_FIRST_CJK = CJK[0]
_FRAGMENT = 4
_LONG_WORD = 64
# Odd and different: the hash depends on the order of the pair, and two equal stems do not cancel out.
FIRST_OF_PAIR, SECOND_OF_PAIR = 0x9E3779B1, 0x85EBCA77

_STOP_WORDS = """
a an and are as at be but by for from has have if in into is it its no not of on or such that the their then
there these they this to was were will with what which who whom whose how why when where do does did can could
should would i me my we our you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_POINTING_WORDS = """
about am any been being had he her hers herself him himself his itself many much myself ourselves ours she some
them theirs themselves those yours yourself
"""
POINTING_WORDS = frozenset(_POINTING_WORDS.split())
"""English that asks and points, beside the stop words. Such a word ranks by its rarity, and covers nothing."""
STOP_CHARACTERS = frozenset("的了是我你您他她它们这那哪谁什么怎吗呢吧啊呀嘛")
"""Chinese that asks and points. A pair of two of them, as 我的 and 什么, ranks by its rarity, and covers nothing."""


class Word(NamedTuple):
    """The hashed terms of one run of letters and digits, or of Chinese characters.

    `whole` is what else it is as one word, or in parts: a term of a document, and evidence beside them in a query. The
    fragments are of the base of an irregular form; those of the form `as_written` are a document's too, and what else
    a question may have of it.
    """

    stems: tuple[int, ...] = ()
    fragments: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    as_written: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()
    cjk_pairs: tuple[int, ...] = ()
    characters: tuple[int, ...] = ()


def words_of(plain: str, *, of_stop_words: bool = True) -> Iterator[Word | None]:
    """The words of a normalised text; None where the neighbours end."""
    for run in _pieces(plain):
        if run in _STOPS:
            yield None
        elif run >= _FIRST_CJK and _IS_CJK(run):
            yield None
            of_run = [run[i : i + 2] for i in range(max(1, len(run) - 1))]
            if not of_stop_words:
                of_run = [pair for pair in of_run if not STOP_CHARACTERS.issuperset(pair)]
                run = "".join(character for character in run if character not in STOP_CHARACTERS)
            yield Word(cjk_pairs=tuple(map(cjk_pair, of_run)), characters=tuple(map(_character, run)))
        elif not of_stop_words and run in POINTING_WORDS:
            yield None  # where it ranks, the words around it are no pair
        else:
            yield _word(run)


def named_in(text: str) -> Iterator[Word | None]:
    """The words that only the case of letters tells: trial A, and the parts of identifiers."""
    for named in _LETTER_A.findall(text) if " A" in text else ():
        pairs = tuple(pair_of(stem, _A) for stem in _word(named.lower()).stems[-1:])
        yield from (None, Word((_A,), pairs=pairs), None)
    for identifier in _IDENTIFIER.findall(text) if _HUMPED.search(text) else ():
        yield Word(whole=tuple(stem for hump in _HUMP.findall(identifier) for stem in _word(hump.lower()).stems))


def _pieces(plain: str) -> list[str]:
    return (_PIECE_OR_NUMBER if _DIGIT.search(plain) else _PIECE).findall(plain)


def pair_of(one: int, other: int) -> int:
    return (one * FIRST_OF_PAIR + other * SECOND_OF_PAIR) & 0xFFFFFFFF


def _word(word: str) -> Word:
    """The terms of a run of letters and digits; not cached for overlong ones."""
    return _parts(word) if len(word) > _LONG_WORD else _cached_parts(word)


def _parts(word: str) -> Word:
    if not word.isalpha():
        if _DATE.fullmatch(word):
            return _of_date(word)
        if _GROUPED.fullmatch(word):
            return _of_groups(word)
        if _CODED.fullmatch(word):
            return _of_code(word)
    if "," in word:  # a number is one word however it is written, and each part finds what was a list
        parts = [_of_plain(part) for part in word.split(",")]
        whole = _of_plain(word.replace(",", ""))
        return Word(whole.stems, whole.fragments, tuple(stem for part in parts for stem in part.stems))
    if "-" in word:
        stems, fragments = _of_parts(word.split("-"))
        return Word(stems, fragments, (_stem(word.replace("-", "")),))
    return _of_plain(word)


def _of_date(word: str) -> Word:
    """The day and its month as one term, then the month by its name and the year; the numbers beside them."""
    day, month, year = date_of(word)
    name = MONTHS[month - 1]
    stems = (_hash(f"d{month}-{day}"), _stem(name), *(() if year is None else (_stem(year),)))
    # 5月 has its character as a term
    chinese = tuple(term for each in word if _IS_CJK(each) for term in (cjk_pair(each), _character(each)))
    return Word(stems, _fragments(name), (_stem(str(day)), _stem(str(month))), chinese)


def _of_groups(word: str) -> Word:
    """A telephone number as one number, also without that of its country, and its groups; of what may be a list of
    numbers these first."""
    one = grouped(word)
    if one is None:
        return Word(*_of_parts(re.findall(r"\d+", word)))
    stems, fragments = _of_parts(one.groups)
    ends = tuple(_of_plain(end).stems[0] for end in one.ends)
    joined = _of_plain(one.joined)
    if one.is_one:
        return Word(joined.stems, joined.fragments, stems, (*ends, *fragments))
    return Word(stems, fragments, joined.stems, (*ends, *joined.fragments))


def _of_code(word: str) -> Word:
    """A code of several parts as one word, and its parts."""
    stems, fragments = _of_parts(word.split("-"))
    joined = word.replace("-", "")
    return Word((_stem(joined),), _fragments(joined), stems, fragments)


def _of_parts(words: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The stems and the fragments of plain words, in their order."""
    parts = [_of_plain(word) for word in words]
    stems = tuple(itertools.chain.from_iterable(part.stems for part in parts))
    return stems, tuple(itertools.chain.from_iterable(part.fragments for part in parts))


def _of_plain(word: str) -> Word:
    fragments = _fragments(word)
    if base := BASES.get(word):
        return Word((_stem(word),), _fragments(base), as_written=fragments)
    if measure := _MEASURE.fullmatch(word):
        number, unit = measure.groups()
        return Word((_stem(number),) if unit in _ORDINALS else (_stem(number), _stem(unit)), fragments)
    if model := _MODEL.fullmatch(word):
        parts = [part for part in model.groups() if part and part not in STOP_WORDS]
        return Word((_stem(word),), fragments, tuple(map(_stem, parts)))
    if code := _CODE.fullmatch(word):
        return Word((_stem(word),), fragments, (_stem(code[1]),))
    if word.isdecimal():  # 09:15 is 9:15
        return Word((_stem(word.lstrip("0") or "0"),), fragments)
    return Word(() if word in STOP_WORDS else (_stem(word),), fragments)


def _fragments(word: str) -> tuple[int, ...]:
    framed = f"^{word}$"
    starts = range(max(1, len(framed) - _FRAGMENT + 1))
    return tuple(_hash(f"f{framed[i : i + _FRAGMENT]}") for i in starts)


def _stem(word: str) -> int:
    return _hash(f"w{stem_of(BASES.get(word, word))}")


_cached_parts = lru_cache(maxsize=1 << 16)(_parts)


@lru_cache(maxsize=1 << 16)
def cjk_pair(pair: str) -> int:
    return _hash(f"w{pair}")


@lru_cache(maxsize=1 << 15)
def _character(character: str) -> int:
    return _hash(f"c{character}")


def _hash(term: str) -> int:
    """CRC-32: stable across processes; 100,000 terms have about one collision."""
    return zlib.crc32(term.encode())


_A = _hash("wa")  # its stem, without loading what finds stems
