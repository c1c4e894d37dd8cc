"""Tokeniser of the sameness check: a text as words, with the sharp ones among them and the order that matters.

A token is a plain word, a sharp piece (a number, a flag, a name, a path, anything that looks like code) or a
Chinese character. Case and punctuation are ignored in plain words, but significant in flags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from projections.similar.exchanged import Clause, clauses
from projections.similar.rewordings import (
    LIGHT_WORDS,
    SHARP_CHINESE,
    SHARP_WORDS,
    meaning,
    one_wording,
    plain_chinese,
    without_courtesies,
)
from projections.vectors.tokens import one_form
from projections.words import CJK

_PIECE = re.compile(
    rf"(?P<end>\n|。)|(?P<cjk>[{CJK}]+)|(?P<code>`[^`\n]{{1,80}}`)|(?P<run>[^\s`、。“”‘’《》【】「」{CJK}]+)"
)
_ENDS = (".", ":", ";", "!", "?")
_SOFT = "\"',;:!?()[]*…"
_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
# The topic that a text begins with: `tar: archive files`
_LABEL = re.compile(rf"(?:[^\s:,{CJK}]+: )*([^\s:,{CJK}]+)(?=:(?:\s|$))")
_COURTESIES = "note tip hint reminder remember fyi attention hello hi"
_NO_LABELS = frozenset(_COURTESIES.split())
_CONTRACTIONS = re.compile(rf"n't(?![^\W{CJK}])", re.IGNORECASE)
_LINKS = "to from than over under before after into onto by for of with against versus"
_PASSIVES = frozenset(
    ["am", "is", "are", "was", "were", "been", "being", "be", "get", "gets", "got", "getting", "gotten"]
)
_AMID = frozenset(
    ["not", "also", "just", "already", "never", "always", "all", "both", "each", "again", "soon", "often"]
)
_DOERS = frozenset(["i", "we", "you", "they", "he", "she", "it", "who", "has", "have", "had"])
"""Light words that stand before what somebody does."""
LINKS = frozenset(_LINKS.split()) | frozenset("从到比向给把被由对于")


@dataclass(frozen=True, slots=True)
class Statement:
    """One text. Keys are lower-case words, sharp pieces as written (case only kept in flags), Chinese characters."""

    words: Counter[str]
    """How often each word or sharp piece occurs."""
    characters: Counter[str]
    """How often each Chinese character occurs, courtesies left out."""
    sharp: frozenset[str]
    """The words that must not differ."""
    names: frozenset[str]
    """Those of `sharp` whose order matters: pieces of code, and words that are always capitalised like names."""
    orders: list[tuple[str, ...]]
    """The sharp words of each sentence, in order."""
    roles: frozenset[tuple[str, str, str]]
    """(term before, linking word, term after) for each linking word such as `from`, `to`, `比`."""
    clauses: tuple[Clause, ...]
    """The terms of each clause, in order, without light ones."""
    suffering: frozenset[str]
    """Words of what is done to somebody, as `hit` in `was hit`; those of what somebody does are in `doing`."""
    doing: frozenset[str]
    label: str
    """The topic that the text begins with, in lower case; empty when there is none."""
    features: frozenset[str]
    """Features for the candidate search: meanings of words, sharp pieces, pairs of Chinese characters."""


@dataclass(slots=True)
class _Token:
    """A word or sharp piece: `hard` if sharp in any case, `capital` if sharp only by its capitals."""

    word: str
    hard: bool
    capital: bool


def statement(text: str) -> Statement:
    """Tokenise a text. Deterministic."""
    plain = _CONTRACTIONS.sub(" not", one_wording(one_form(text).replace("’", "'")))
    label, span = _label(plain)
    reading = _Reading()
    for sentence in _sentences(plain, span):
        reading.add(sentence)
    return Statement(
        words=reading.words,
        characters=reading.characters,
        sharp=frozenset(reading.sharp),
        names=frozenset(reading.sharp - reading.common),
        orders=reading.orders,
        roles=frozenset(reading.roles),
        clauses=clauses(plain),
        suffering=frozenset(reading.suffering),
        doing=frozenset(reading.doing),
        label=label,
        features=frozenset(reading.features),
    )


def _label(plain: str) -> tuple[str, tuple[int, int]]:
    """The topic that a text begins with, in lower case, and where it stands; empty when there is none."""
    found = _LABEL.match(plain)
    label = without_courtesies(found.group(1)).lower() if found else ""
    return (label, found.span(1)) if found and label and label not in _NO_LABELS else ("", (0, 0))


class _Reading:
    """What is known of a text after the sentences read so far."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.characters: Counter[str] = Counter()
        self.sharp: set[str] = set()
        self.common: set[str] = set()
        """Words that occur somewhere without standing out: they are no names."""
        self.orders: list[tuple[str, ...]] = []
        self.roles: set[tuple[str, str, str]] = set()
        self.features: set[str] = set()
        self.suffering: set[str] = set()
        self.doing: set[str] = set()

    def add(self, sentence: Sequence[_Token | str]) -> None:
        tokens = [token for token in sentence if isinstance(token, _Token)]
        capitals_count = not _shouted(tokens)
        terms: list[str] = []
        for token in sentence:
            if isinstance(token, str):
                terms += self._add_chinese(token)
                continue
            self._add_word(token.word, token.hard or (token.capital and capitals_count))
            if token.word in LINKS or token.word not in LIGHT_WORDS:
                terms.append(token.word)
        self.orders.append(tuple(token.word for token in tokens if token.word in self.sharp))
        self.roles.update(_roles(terms))
        self._add_voices(tokens)

    def _add_voices(self, tokens: Sequence[_Token]) -> None:
        """Which words say what is done to somebody, and which what somebody does."""
        passive = False
        before = ""
        for token in tokens:
            word = token.word
            if word in _PASSIVES:
                passive = True
            elif passive and (word in _AMID or word.endswith("ly")):
                continue
            else:
                if passive:
                    self.suffering.add(word)
                elif before in _DOERS or (before and before not in LIGHT_WORDS):
                    self.doing.add(word)
                passive = False
            before = word

    def _add_chinese(self, run: str) -> str:
        """Returns the characters that bear the meaning."""
        self.characters.update(without_courtesies(run))
        plain = plain_chinese(run)
        sharp = SHARP_CHINESE.findall(plain)
        self.words.update(sharp)
        self.sharp.update(sharp)
        self.features.update(plain[at : at + 2] for at in range(max(1, len(plain) - 1)))
        return plain

    def _add_word(self, word: str, stands_out: bool) -> None:
        """`stands_out`: as code or a name does, by how it is written here."""
        self.words[word] += 1
        if stands_out or word in SHARP_WORDS:
            self.sharp.add(word)
        if not stands_out:
            self.common.add(word)
        if word not in LIGHT_WORDS:
            self.features.add(meaning(word))


def _roles(terms: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Each of up to eight terms before a linking word, with the word and the term after it."""
    for at in range(1, len(terms) - 1):
        if terms[at] in LINKS:
            for before in terms[max(0, at - 8) : at]:
                yield before, terms[at], terms[at + 1]


def _shouted(tokens: list[_Token]) -> bool:
    """Whether a sentence is Written Like a Title or SHOUTED, so that its capitals do not mark names."""
    long = [token for token in tokens if not token.hard and len(token.word) > 3]
    return len(long) > 1 and sum(token.capital for token in long) * 2 > len(long)


def _sentences(plain: str, about: tuple[int, int]) -> Iterator[list[_Token | str]]:
    """Each sentence's tokens in order; runs of Chinese characters are kept as strings."""
    sentence: list[_Token | str] = []
    for piece in _PIECE.finditer(plain):
        kind, run = piece.lastgroup, piece.group()
        if kind == "end":
            yield sentence
            sentence = []
        elif kind == "cjk":
            sentence.append(run)
        elif not run.strip(f"{_SOFT}.") and piece.start() and not plain[piece.start() - 1].isspace():
            yield sentence  # punctuation after a quotation ends the sentence
            sentence = []
        else:
            sentence += tokens_of(run, not sentence, kind == "code" or about[0] <= piece.start() < about[1])
            if run.endswith(_ENDS):
                yield sentence
                sentence = []
    yield sentence


@lru_cache(maxsize=1 << 16)
def tokens_of(run: str, begins: bool, named: bool) -> tuple[_Token, ...]:
    """The tokens of a run without spaces, or of a piece of code with some; `named` makes them all sharp."""
    if " " in run:
        return tuple(token for piece in run.split() for token in tokens_of(piece, False, named))
    core = run.strip("`").lstrip(_SOFT)
    core = core.rstrip(f"{_SOFT}.") if core.strip(".") else core
    core = core.removesuffix("'s")
    if not core:
        return ()
    if not _WORD.fullmatch(core):
        return (_Token(core if core.startswith("-") else core.lower(), True, False),)
    tokens = []
    for word in core.replace("'", "-").split("-"):
        lower = word.lower()
        capital = not word.islower() and not (begins and word.istitle() and len(word) > 1)
        light = lower in LIGHT_WORDS and (begins or word != "A")
        tokens.append(_Token(lower, named, capital and not light))
        begins = False
    return tuple(tokens)
