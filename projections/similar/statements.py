"""Tokeniser of the sameness check: a text as words, with the sharp ones among them and the order that matters.

A token is a plain word, a sharp piece (a number, a flag, a name, a path, anything that looks like code) or a
Chinese character. Case and punctuation are ignored in plain words, but significant in flags.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from projections.similar.rewordings import LIGHT_WORDS, SHARP_WORDS, meaning, plain_chinese, without_courtesies
from projections.vectors.tokens import CJK, one_form

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
_CONTRACTIONS = re.compile(r"n't\b", re.IGNORECASE)
_LINKS = "to from than over under before after into onto by for of with against versus"
LINKS = frozenset(_LINKS.split()) | frozenset("从到比向给把被由对于")


@dataclass(slots=True)
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
    plain = _CONTRACTIONS.sub(" not", one_form(text).replace("’", "'"))
    label = _LABEL.match(plain)
    about = without_courtesies(label.group(1)).lower() if label else ""
    result = Statement(
        Counter(),
        Counter(),
        frozenset(),
        frozenset(),
        [],
        frozenset(),
        "" if about in _NO_LABELS else about,
        frozenset(),
    )
    sharp: set[str] = set()
    common: set[str] = set()  # words that occur uncapitalised
    features: set[str] = set()
    roles: set[tuple[str, str, str]] = set()
    for sentence in _sentences(plain, label.span(1) if label and result.label else (0, 0)):
        tokens = [token for token in sentence if isinstance(token, _Token)]
        capitals_count = not _shouted(tokens)
        order = []
        chain: list[str] = []  # the meaningful terms in order, for the roles
        for token in sentence:
            if isinstance(token, str):
                result.characters.update(without_courtesies(token))
                plain = plain_chinese(token)
                features.update(plain[at : at + 2] for at in range(max(1, len(plain) - 1)))
                chain += plain
                continue
            word = token.word
            result.words[word] += 1
            order.append(word)
            if token.hard or (token.capital and capitals_count) or word in SHARP_WORDS:
                sharp.add(word)
            if not token.hard and not (token.capital and capitals_count):
                common.add(word)
            if word in LINKS or word not in LIGHT_WORDS:
                chain.append(word)
            if word not in LIGHT_WORDS:
                features.add(meaning(word))
        result.orders.append(tuple(word for word in order if word in sharp))
        for at in range(1, len(chain) - 1):
            if chain[at] in LINKS:
                roles.update((before, chain[at], chain[at + 1]) for before in chain[max(0, at - 8) : at])
    result.names = frozenset(sharp - common)
    result.sharp, result.roles, result.features = frozenset(sharp), frozenset(roles), frozenset(features)
    return result


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
