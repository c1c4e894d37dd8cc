"""Tokeniser: turns a text into a sparse vector of weighted terms.

The vector has three kinds of terms:

- *words*: English stems without stop words, Chinese two-character pairs;
- *pairs* of neighbouring stems, so that words that stand together count for more, and a compound as one word;
- *fragments*: character 4-grams of words and single Chinese characters, for typos and command names.

A document's weight is BM25's term-frequency part (saturation and length, with a fixed average length, so
that no weight depends on another document). The store adds the inverse document frequency, which depends on the
corpus. A query's vector has its terms with the weight of each kind.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.english import BASES
from projections.english import stem as stem_of
from projections.vectors.simplified import simplified
from projections.written import CODE, DATE, GROUPED, MONTHS, date_of, grouped

MOST_CHARACTERS = 100_000
"""Only the first characters of a text are searchable: tokenising a mebibyte would block every search for seconds."""

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
_UINT32 = "I"
_LONG_WORD = 64
_NORMALISED_AT_ONCE = 1_000
# Cut before what never joins the character before it, where there is such a place.
_TO_NORMALISE = re.compile(
    rf".{{1,{_NORMALISED_AT_ONCE}}}(?=[\x00-\x7f\u3400-\u4dbf\u4e00-\u9fff]|\Z)|.{{1,{_NORMALISED_AT_ONCE}}}", re.DOTALL
)
# What's, we'd, aren't, can't: what the apostrophe shortens is no word of its own.
_SHORTENED = re.compile(
    rf"(?<=[^\W\d_])(?:(?:(?<!ca)n)?['\u2019\u02bc]t|['\u2019\u02bc](?:s|m|d|re|ve|ll))(?![^\W_{CJK}])"
)
# Odd and different: the hash depends on the order of the pair, and two equal stems do not cancel out.
_FIRST_OF_PAIR, _SECOND_OF_PAIR = 0x9E3779B1, 0x85EBCA77

# Latin letters with an accent, which many leave out, and their letters.
_ACCENTED = {
    letter: plain
    for letter in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))
    if (plain := unicodedata.normalize("NFD", letter)[0]).isascii()
} | {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe"}
_HAS_ACCENTS = re.compile(f"[{''.join(_ACCENTED)}]")

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

HOMES = ("我家", "你家", "您家", "他家", "她家", "咱家", "们家")
"""Pairs that say whose something is, as *my* does: in a question each counts as a character. 我家猫几岁了 is about
a cat, and 我家地址 is an address."""

# Measured with bench/recall.py; each weight is in the middle of a broad plateau, none at a peak.
PAIR_WEIGHT = 0.4
FRAGMENT_WEIGHT = 0.15
CJK_PAIR_WEIGHT = 0.5  # n characters make n - 1 overlapping pairs, so each counts half a word
CJK_CHARACTER_WEIGHT = 0.2


@dataclass(frozen=True, slots=True)
class Sparse:
    """A sparse vector: `indices` uint32 and unique, `values` float32, of one length."""

    indices: NDArray[np.uint32]
    values: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Weighting of one kind of term in a document: BM25's k1 and b, and the average number of terms."""

    k1: float
    b: float
    usual: float


# Chinese needs a lower k1 and b: its sentences repeat characters by chance, and length is less informative.
_STEM = _Kind(k1=1.2, b=0.75, usual=50)
_PAIR = _Kind(k1=1.2, b=0.75, usual=50)
_PART = _Kind(k1=1.2, b=0.75, usual=200)
_CJK = _Kind(k1=0.6, b=0.4, usual=50)
_KINDS = (_STEM, _PAIR, _PART, _CJK, _CJK)
"""In the order of the fields of `_Terms`."""
_K1, _B, _USUAL = (np.array([getattr(kind, part) for kind in _KINDS]) for part in ("k1", "b", "usual"))


class _Terms(NamedTuple):
    """The hashed terms of one text by kind, each as often and in the order in which it occurs."""

    stems: list[int]
    pairs: list[int]
    fragments: list[int]
    cjk_pairs: list[int]
    characters: list[int]


class _Word(NamedTuple):
    """The hashed terms of one run of letters and digits.

    `whole` is what else it is as one word, or in parts: a term of a document, and evidence beside them in a query. The
    fragments are of the base of an irregular form; those of the form `as_written` are a document's too, and what else
    a question may have of it.
    """

    stems: tuple[int, ...]
    fragments: tuple[int, ...]
    whole: tuple[int, ...] = ()
    as_written: tuple[int, ...] = ()


def normalise(text: str) -> str:
    """The searchable part of a text in NFKC form, simplified Chinese and lower case, without accents.

    `ＧＩＴ` and `git` are one word, and `Café` is `cafe`, 資料 is 资料, `what's` is `what`.

    Cut before and after, as NFKC may expand one character to eighteen.
    """
    text = text[:MOST_CHARACTERS]
    if text.isascii():
        text = text.lower()
    else:
        text = _HAS_ACCENTS.sub(lambda found: _ACCENTED[found[0]], one_form(text).lower())[:MOST_CHARACTERS]
    return _SHORTENED.sub("", text) if any(mark in text for mark in "'\u2019\u02bc") else text


def one_form(text: str) -> str:
    """A text in NFKC form and in simplified Chinese.

    Normalised in pieces: a run of combining marks takes the square of its length in time, and no other thread runs
    meanwhile.
    """
    return simplified("".join(unicodedata.normalize("NFKC", piece) for piece in _TO_NORMALISE.findall(text)))


def document_terms(task: str, content: str) -> Sparse:
    """The sparse vector of an item, its indices sorted."""
    return documents_terms([f"{task}\n{content}"])[0]


def documents_terms(texts: Sequence[str]) -> list[Sparse]:
    """The sparse vectors of items, each from its task, a newline and its content; no vector depends on another text."""
    parts = [part for text in texts for part in _terms(text, of_document=True)]
    terms = np.frombuffer(array(_UINT32, itertools.chain.from_iterable(parts)), np.uint32)
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    # in one number: which text, which term, which kind
    of_text, kind = np.divmod(np.arange(len(parts), dtype=np.uint64), len(_KINDS))
    keys = np.repeat(of_text << np.uint64(35) | kind, lengths) | terms.astype(np.uint64) << np.uint64(3)
    keys.sort()
    firsts = _firsts(keys)
    counts = np.diff(np.r_[firsts, len(keys)])
    keys = keys[firsts]
    kind = (keys & np.uint64(7)).astype(np.int64)
    total = lengths[(keys >> np.uint64(35)).astype(np.int64) * len(_KINDS) + kind]
    damping = _K1[kind] * (1 - _B[kind] + _B[kind] * total / _USUAL[kind])
    weights = counts * (_K1[kind] + 1) / (counts + damping)
    keys >>= np.uint64(3)
    firsts = _firsts(keys)
    # on a hash collision the weights of the kinds add up
    weights = np.add.reduceat(weights, firsts) if len(firsts) else weights
    keys = keys[firsts]
    ends = np.searchsorted(keys >> np.uint64(32), np.arange(len(texts) + 1, dtype=np.uint64)).tolist()
    indices, values = keys.astype(np.uint32), weights.astype(np.float32)
    return [Sparse(indices[begin:end], values[begin:end]) for begin, end in itertools.pairwise(ends)]


def _firsts(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Where each different one of these sorted numbers begins."""
    return np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.int64)


def query_terms(text: str, *, words_only: bool = False, of_stop_words: bool = True, each_once: bool = False) -> Sparse:
    """The sparse vector of a query.

    `words_only` is plain keyword search: stems and Chinese pairs. Otherwise pairs of words and fragments are added,
    those of stop words too unless `of_stop_words` is false, which leaves out Chinese stop characters as well. A term
    counts as often as it occurs, or `each_once`. A query of only stop words and punctuation gives an empty vector, but
    for these.
    """
    terms = _terms(text, of_stop_words=of_stop_words)
    weights: dict[int, float] = {}
    kinds = [(terms.stems, 1.0), (terms.cjk_pairs, CJK_PAIR_WEIGHT)]
    if not words_only:
        kinds += [
            (terms.pairs, PAIR_WEIGHT),
            (terms.fragments, FRAGMENT_WEIGHT),
            (terms.characters, CJK_CHARACTER_WEIGHT),
        ]
    for occurring, weight in kinds:
        for term, count in Counter(occurring).items():
            weights[term] = weights.get(term, 0.0) + (weight if each_once else weight * count)
    for term in _of_homes.intersection(terms.cjk_pairs):
        weights[term] *= CJK_CHARACTER_WEIGHT / CJK_PAIR_WEIGHT
    return Sparse(
        indices=np.fromiter(weights.keys(), np.uint32, len(weights)),
        values=np.fromiter(weights.values(), np.float32, len(weights)),
    )


def word_terms(text: str) -> list[int]:
    """The hashes of a text's stems and Chinese pairs, each as often as it occurs, equal ones together."""
    terms = _terms(text)
    return [term for kind in (terms.stems, terms.cjk_pairs) for term in Counter(kind).elements()]


def fragments_by_word(text: str) -> list[tuple[int, ...]]:
    """The hashes of the fragments of each word of a query that says something."""
    runs = (run for run in _pieces(normalise(text)) if run not in _STOPS and not _IS_CJK(run))
    words = (_word(run) for run in runs if run not in POINTING_WORDS)
    return [word.fragments for word in words if word.stems]


def _pieces(plain: str) -> list[str]:
    return (_PIECE_OR_NUMBER if _DIGIT.search(plain) else _PIECE).findall(plain)


def _terms(text: str, *, of_stop_words: bool = True, of_document: bool = False) -> _Terms:
    stems: list[int] = []
    pairs: list[int] = []
    fragments: list[int] = []
    cjk_pairs: list[int] = []
    characters: list[int] = []
    before: int | None = None
    for run in _pieces(normalise(text)):
        if run in _STOPS:
            before = None
            continue
        if run >= _FIRST_CJK and _IS_CJK(run):
            before = None
            of_run = [run[i : i + 2] for i in range(max(1, len(run) - 1))]
            if not of_stop_words:
                of_run = [pair for pair in of_run if not STOP_CHARACTERS.issuperset(pair)]
                run = "".join(character for character in run if character not in STOP_CHARACTERS)
            characters += map(_character, run)
            cjk_pairs += map(_cjk_pair, of_run)
            continue
        if not of_stop_words and run in POINTING_WORDS:
            before = None  # where it ranks, the words around it are no pair
            continue
        word = _word(run)
        if word.stems or of_stop_words:
            fragments += word.fragments
        if of_document:
            fragments += word.as_written
        for stem in word.stems:  # a stop word is no term, and the stems around it still form a pair
            stems.append(stem)
            if before is not None:
                pairs.append(_pair(before, stem))
            before = stem
        (stems if of_document else pairs).extend(word.whole)
    text = text[:MOST_CHARACTERS]
    for named in _LETTER_A.findall(text) if " A" in text else ():
        stems.append(_A)
        pairs += (_pair(stem, _A) for stem in _word(named.lower()).stems[-1:])
    for identifier in _IDENTIFIER.findall(text) if _HUMPED.search(text) else ():
        parts = [stem for hump in _HUMP.findall(identifier) for stem in _word(hump.lower()).stems]
        (stems if of_document else pairs).extend(parts)
    return _Terms(stems, pairs, fragments, cjk_pairs, characters)


def _pair(one: int, other: int) -> int:
    return (one * _FIRST_OF_PAIR + other * _SECOND_OF_PAIR) & 0xFFFFFFFF


def _word(word: str) -> _Word:
    """The terms of a run of letters and digits; not cached for overlong ones."""
    return _parts(word) if len(word) > _LONG_WORD else _cached_parts(word)


def _parts(word: str) -> _Word:
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
        return _Word(whole.stems, whole.fragments, tuple(stem for part in parts for stem in part.stems))
    if "-" in word:
        stems, fragments = _of_parts(word.split("-"))
        return _Word(stems, fragments, (_stem(word.replace("-", "")),))
    return _of_plain(word)


def _of_date(word: str) -> _Word:
    """The day and its month as one term, then the month by its name and the year; the numbers beside them."""
    day, month, year = date_of(word)
    name = MONTHS[month - 1]
    stems = (_hash(f"d{month}-{day}"), _stem(name), *(() if year is None else (_stem(year),)))
    # 5月 has its character as a term
    chinese = tuple(term for each in word if _IS_CJK(each) for term in (_cjk_pair(each), _character(each)))
    return _Word(stems, _fragments(name), (_stem(str(day)), _stem(str(month))), chinese)


def _of_groups(word: str) -> _Word:
    """A telephone number as one number, also without that of its country, and its groups; of what may be a list of
    numbers these first."""
    one = grouped(word)
    if one is None:
        return _Word(*_of_parts(re.findall(r"\d+", word)))
    stems, fragments = _of_parts(one.groups)
    ends = tuple(_of_plain(end).stems[0] for end in one.ends)
    joined = _of_plain(one.joined)
    if one.is_one:
        return _Word(joined.stems, joined.fragments, stems, (*ends, *fragments))
    return _Word(stems, fragments, joined.stems, (*ends, *joined.fragments))


def _of_code(word: str) -> _Word:
    """A code of several parts as one word, and its parts."""
    stems, fragments = _of_parts(word.split("-"))
    joined = word.replace("-", "")
    return _Word((_stem(joined),), _fragments(joined), stems, fragments)


def _of_parts(words: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The stems and the fragments of plain words, in their order."""
    parts = [_of_plain(word) for word in words]
    stems = tuple(itertools.chain.from_iterable(part.stems for part in parts))
    return stems, tuple(itertools.chain.from_iterable(part.fragments for part in parts))


def _of_plain(word: str) -> _Word:
    fragments = _fragments(word)
    if base := BASES.get(word):
        return _Word((_stem(word),), _fragments(base), as_written=fragments)
    if measure := _MEASURE.fullmatch(word):
        number, unit = measure.groups()
        return _Word((_stem(number),) if unit in _ORDINALS else (_stem(number), _stem(unit)), fragments)
    if model := _MODEL.fullmatch(word):
        parts = [part for part in model.groups() if part and part not in STOP_WORDS]
        return _Word((_stem(word),), fragments, tuple(map(_stem, parts)))
    if code := _CODE.fullmatch(word):
        return _Word((_stem(word),), fragments, (_stem(code[1]),))
    if word.isdecimal():  # 09:15 is 9:15
        return _Word((_stem(word.lstrip("0") or "0"),), fragments)
    return _Word(() if word in STOP_WORDS else (_stem(word),), fragments)


def _fragments(word: str) -> tuple[int, ...]:
    framed = f"^{word}$"
    starts = range(max(1, len(framed) - _FRAGMENT + 1))
    return tuple(_hash(f"f{framed[i : i + _FRAGMENT]}") for i in starts)


def _stem(word: str) -> int:
    return _hash(f"w{stem_of(BASES.get(word, word))}")


_cached_parts = lru_cache(maxsize=1 << 16)(_parts)


@lru_cache(maxsize=1 << 16)
def _cjk_pair(pair: str) -> int:
    return _hash(f"w{pair}")


@lru_cache(maxsize=1 << 15)
def _character(character: str) -> int:
    return _hash(f"c{character}")


def _hash(term: str) -> int:
    """CRC-32: stable across processes; 100,000 terms have about one collision."""
    return zlib.crc32(term.encode())


_A = _hash("wa")  # its stem, without loading what finds stems
_of_homes = frozenset(map(_cjk_pair, HOMES))
