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
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from projections.vectors.simplified import simplified
from projections.words import (
    CJK,
    FIRST_OF_PAIR,
    SECOND_OF_PAIR,
    Word,
    cjk_pair,
    named_in,
    pair_of,
    words_of,
)
from projections.written import apart

MOST_CHARACTERS = 100_000
"""Only the first characters of a text are searchable: tokenising a mebibyte would block every search for seconds."""

_UINT64 = "Q"
_NORMALISED_AT_ONCE = 1_000
# Cut before what never joins the character before it, where there is such a place.
_TO_NORMALISE = re.compile(
    rf".{{1,{_NORMALISED_AT_ONCE}}}(?=[\x00-\x7f\u3400-\u4dbf\u4e00-\u9fff]|\Z)|.{{1,{_NORMALISED_AT_ONCE}}}", re.DOTALL
)
# What's, we'd, aren't, can't: what the apostrophe shortens is no word of its own.
_SHORTENED = re.compile(
    rf"(?<=[^\W\d_])(?:(?:(?<!ca)n)?['\u2019\u02bc]t|['\u2019\u02bc](?:s|m|d|re|ve|ll))(?![^\W_{CJK}])"
)
# Latin letters with an accent, which many leave out, and their letters.
_ACCENTED = {
    letter: plain
    for letter in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))
    if (plain := unicodedata.normalize("NFD", letter)[0]).isascii()
} | {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe"}
_HAS_ACCENTS = re.compile(f"[{''.join(_ACCENTED)}]")

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


_STEM, _PAIR, _PART, _CJK_PAIR, _CHARACTER = range(5)
# Chinese needs a lower k1 and b: its sentences repeat characters by chance, and length is less informative.
_KINDS = {
    _STEM: _Kind(k1=1.2, b=0.75, usual=50),
    _PAIR: _Kind(k1=1.2, b=0.75, usual=50),
    _PART: _Kind(k1=1.2, b=0.75, usual=200),
    _CJK_PAIR: _Kind(k1=0.6, b=0.4, usual=50),
    _CHARACTER: _Kind(k1=0.6, b=0.4, usual=50),
}
_K1, _B, _USUAL = (np.array([getattr(kind, part) for kind in _KINDS.values()]) for part in ("k1", "b", "usual"))
_WHOLE, _END = len(_KINDS), len(_KINDS) + 1
"""What has no neighbours: see `Word.whole`; and where the neighbours of a stem end."""
_KIND_BITS = 3
_KIND = (1 << _KIND_BITS) - 1


class _Terms(NamedTuple):
    """The hashed terms of a query by kind, each as often and in the order in which it occurs."""

    stems: list[int]
    pairs: list[int]
    fragments: list[int]
    cjk_pairs: list[int]
    characters: list[int]


_KIND_OF_FIELD = (_STEM, _PART, _WHOLE, _PART, _PAIR, _CJK_PAIR, _CHARACTER)
"""What the fields of a word are in a document."""


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
    numbers, of_text = _numbers_of(texts)
    # in one number: which text, which term, which kind
    keys = of_text << np.uint64(32 + _KIND_BITS) | numbers
    totals = np.bincount(_text_and_kind(keys), minlength=len(texts) * len(_KINDS))
    keys.sort(kind="stable")  # each text's are already behind those of the one before
    firsts = _firsts(keys)
    counts = np.diff(np.r_[firsts, len(keys)])
    keys = keys[firsts]
    kind = (keys & np.uint64(_KIND)).astype(np.int64)
    damping = _K1[kind] * (1 - _B[kind] + _B[kind] * totals[_text_and_kind(keys)] / _USUAL[kind])
    weights = counts * (_K1[kind] + 1) / (counts + damping)
    keys >>= np.uint64(_KIND_BITS)
    firsts = _firsts(keys)
    # on a hash collision the weights of the kinds add up
    weights = np.add.reduceat(weights, firsts) if len(firsts) else weights
    keys = keys[firsts]
    ends = np.searchsorted(keys >> np.uint64(32), np.arange(len(texts) + 1, dtype=np.uint64)).tolist()
    indices, values = keys.astype(np.uint32), weights.astype(np.float32)
    return [Sparse(indices[begin:end], values[begin:end]) for begin, end in itertools.pairwise(ends)]


def _numbers_of(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The numbers of all terms of documents, and the number of the text that each is of."""
    parts = []
    for text in texts:
        named = _numbers((*named_in(text[:MOST_CHARACTERS]), None))
        parts.append(b"".join((*map(_known.__getitem__, apart(normalise(text))), named)))
    numbers = np.frombuffer(b"".join(parts), np.uint64)
    of_text = np.repeat(np.arange(len(texts), dtype=np.uint64), [len(part) // numbers.itemsize for part in parts])
    kind = numbers & np.uint64(_KIND)
    in_row = (kind == _STEM) | (kind == _END)
    stems, texts_of_stems, stem = numbers[in_row] >> np.uint64(_KIND_BITS), of_text[in_row], kind[in_row] == _STEM
    beside = stem[:-1] & stem[1:]
    pairs = stems[:-1][beside] * np.uint64(FIRST_OF_PAIR) + stems[1:][beside] * np.uint64(SECOND_OF_PAIR)
    pairs = (pairs & np.uint64(0xFFFFFFFF)) << np.uint64(_KIND_BITS) | np.uint64(_PAIR)
    terms = numbers[kind < _WHOLE], numbers[kind == _WHOLE] - np.uint64(_WHOLE - _STEM), pairs
    of_texts = of_text[kind < _WHOLE], of_text[kind == _WHOLE], texts_of_stems[:-1][beside]
    return np.concatenate(terms), np.concatenate(of_texts)


def _text_and_kind(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """One number for each text and kind."""
    return ((keys >> np.uint64(32 + _KIND_BITS)) * np.uint64(len(_KINDS)) + (keys & np.uint64(_KIND))).astype(np.int64)


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
    words = words_of(normalise(text), of_stop_words=False)
    return [word.fragments for word in words if word is not None and word.stems]


def _terms(text: str, *, of_stop_words: bool = True) -> _Terms:
    stems: list[int] = []
    pairs: list[int] = []
    fragments: list[int] = []
    cjk_pairs: list[int] = []
    characters: list[int] = []
    before: int | None = None
    for word in (*words_of(normalise(text), of_stop_words=of_stop_words), *named_in(text[:MOST_CHARACTERS])):
        if word is None:
            before = None
            continue
        if word.stems or of_stop_words:
            fragments += word.fragments
        for stem in word.stems:  # a stop word is no term, and the stems around it still form a pair
            stems.append(stem)
            if before is not None:
                pairs.append(pair_of(before, stem))
            before = stem
        pairs += word.whole + word.pairs
        cjk_pairs += word.cjk_pairs
        characters += word.characters
    return _Terms(stems, pairs, fragments, cjk_pairs, characters)


def _numbers(words: Iterable[Word | None]) -> bytes:
    """The terms of these words of a document, each with its kind in its last bits, as 64-bit numbers.

    Pairs of stems are left to the caller: of two stems with no end between them.
    """
    numbers = array(_UINT64)
    for word in words:
        if word is None:
            numbers.append(_END)
        else:
            for kind, terms in zip(_KIND_OF_FIELD, word, strict=True):
                numbers.extend([term << _KIND_BITS | kind for term in terms])
    return numbers.tobytes()


_LONG = 64
_MOST_KNOWN = 1 << 23
_ENTRY_BYTES = 200


class _Known(dict[str, bytes]):
    """What documents have between two spaces, with its packed numbers; most of it occurs again and again.

    Holds about `_MOST_KNOWN` bytes, then begins anew.
    """

    def __init__(self) -> None:
        self._held = 0

    def __missing__(self, piece: str) -> bytes:
        numbers = _numbers(words_of(piece))
        if len(piece) <= _LONG:
            if self._held > _MOST_KNOWN:
                self.clear()
                self._held = 0
            self[piece] = numbers
            self._held += len(piece) + len(numbers) + _ENTRY_BYTES
        return numbers


_known = _Known()


_of_homes = frozenset(map(cjk_pair, HOMES))
