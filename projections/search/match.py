"""`match`: how much of a query an item covers, 0 to 1, with the same meaning in every query and in every store.

The share of the query's weight whose terms the item has. The weight of a term is that of the keyword path times its
rarity in the language, by background frequencies that ship with the product (bench/background.py says what they are
made from). It depends on the query and on the item's words alone: other items, hidden ones above all, change nothing
in it, and a store of one item measures like one of a million. A long text is measured by its best passage.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from projections.search.asking import among, faults_among, is_about_a_fault, what_is_asked, without_words_that_ask
from projections.search.whose import Named, marked, named_by, share_of, whose
from projections.vectors.question import Question, Searched
from projections.vectors.tokens import MOST_CHARACTERS, documents_terms, fragments_by_word, query_terms

BACKGROUND = Path(__file__).with_name("background.npz")
"""Made by bench/background.py from the word counts of SymSpell (Wolf Garbe, MIT licence), which are of Google Books
Ngrams (CC BY 3.0), and from those of jieba (Sun Junyi, MIT licence)."""
LENT_MATCH = 0.9
"""Of the match of the item beside it (projections/search/neighbours.py): a neighbour is read together with that one."""

BESIDE_SURE = 0.75
"""Of the floor, what is enough for a result beside one that reaches it: where something is known, an answer in other
words than the question is worth its line."""

ASKING_SHARE = 0.5
"""Of its weight, that of a Chinese word that asks and of the pairs it makes: 候交 of 什么时候交 is in no answer."""

LEAST_ASKED = 35.0
"""Weight of a question among other sentences that says enough to be known by its words, as of some three that are
rare: 怎么办 and "how do I fix it" weigh less, and 95 of 100 queries of bench/recall.py more."""
MOST_BESIDE = 2.0
"""Of the weight of a question and the sentences next to it, what all others of a message weigh at most."""
LEAST_SHARE = 3e-5
"""A term in fewer texts than this is as rare as an unknown one."""
_TEXTS = 1e5
UNRELATED = 0.4
"""A cosine up to this says nothing: texts that have nothing to do with each other reach it. Chosen on one half of the
questions of bench/sentence_model.py and reported on the other."""

FEWEST_FRAGMENTS = 2
LONE_FRAGMENT = 0.25
"""Of its share, that of a fragment of a word without another: the beginning of `tea` in `team` is no typo of it."""
PASSAGE = 700
"""Bytes of a passage: some 120 English words or 230 Chinese characters."""
_OVERLAP = 100

Passages = tuple[NDArray[np.uint32], ...]
"""The terms of each passage of an item, sorted: one passage for most items."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A query's terms and their share of its weight; the shares add up to 1, in a question that says little to less."""

    terms: NDArray[np.uint32]
    shares: NDArray[np.float64]
    words: NDArray[np.intp]
    """Where the fragments of each word begin among the terms; they stand together, after all other terms."""
    questions: Weighed | None = None
    """The questions alone, of a message that says other things too: the better match of the two counts."""
    weight: float = 0.0
    """What all terms weigh together."""
    whose: tuple[Named, ...] = ()
    """Whom the query names as those whose something it asks for."""

    def of(self, readers: str) -> Weighed:
        """The query as it is matched with an item of this owner and these scopes: what Tom said, or what a project
        knows of itself, needs no name."""
        questions = None if self.questions is None else self.questions.of(readers)
        named = () if self.whose and named_by(readers, self.whose) else self.whose
        return replace(self, whose=named, questions=questions)

    @property
    def names_somebody(self) -> bool:
        """Whether it, or its questions alone, name somebody."""
        return bool(self.whose) or (self.questions is not None and self.questions.names_somebody)


def weighed(query: str) -> Weighed:
    """The terms of a query, weighed by kind and rarity; without any for a query without letters.

    What only asks is left out, where anything else is said.
    """
    return Heard(query).weighed


class Heard:
    """A query as it is heard: what it asks is read once, for the paths that search and for the match."""

    def __init__(self, query: str) -> None:
        asked = what_is_asked(query)
        self._query = query
        self._asked = asked if any(map(str.isalnum, asked)) else query
        self._among = among(query)

    @cached_property
    def weighed(self) -> Weighed:
        """Its terms, weighed: the whole, the questions alone, and these with the faults that they ask about."""
        whole = _weighed(self._asked)
        if self._asked != self._query and not len(whole.terms):
            whole = _weighed(self._query)
        if named := whose(self._query, self._asked):
            whole = replace(whole, whose=named)
        if self._among is None:
            return whole
        asked = self._among.questions
        named = whose(self._query, asked) if whole.whose else ()
        questions = replace(_weighed(asked, LEAST_ASKED), whose=named)
        if self._faults:
            faults = replace(_weighed(f"{asked}\n{self._faults}", LEAST_ASKED), whose=named)
            questions = replace(questions, questions=faults)
        return replace(whole, questions=questions)

    @cached_property
    def _faults(self) -> str:
        """The lines that tell of a fault, where the questions ask about one, or say little."""
        questions = "" if self._among is None else self._among.questions
        if is_about_a_fault(questions) or _weighed(questions).weight < LEAST_ASKED:
            return faults_among(self._query)
        return ""

    @property
    def searched(self) -> Searched:
        """What the paths search for: all that stands further from a question than the sentence next to it weighs no
        more than MOST_BESIDE times what is near."""
        if self._among is None or self._among.near is None:
            return self._asked
        near = f"{self._among.near}\n{self._faults}" if self._faults else self._among.near
        weight = _weight(near)
        others = _weight(self._asked) - weight
        if weight <= 0 or others <= MOST_BESIDE * weight:
            return self._asked
        says = min(1.0, weight / LEAST_ASKED)
        return Question(self._asked, near, says * MOST_BESIDE * weight / others + 1 - says)


def _weighed(asked: str, least: float = 0.0) -> Weighed:
    """The terms of a text; where they weigh less than `least`, their shares are of that."""
    terms = query_terms(asked, of_stop_words=False)
    values = terms.values
    if (bare := without_words_that_ask(asked)) is not None:
        said = query_terms(bare, of_stop_words=False)
        of = dict(zip(said.indices.tolist(), said.values.tolist(), strict=True))
        full = np.array([of.get(term, 0.0) for term in terms.indices.tolist()], np.float32)
        values = full + ASKING_SHARE * (values - full)
    weights = values * _rarity(terms.indices)
    total = max(least, float(weights.sum()))
    places = {term: place for place, term in enumerate(terms.indices.tolist())}
    words: list[list[int]] = []
    for fragments in reversed(fragments_by_word(asked)):
        # A fragment that two words have is of the later one. One alone is a letter, or what another word leaves.
        word = [place for term in fragments if (place := places.pop(term, None)) is not None]
        if len(word) >= FEWEST_FRAGMENTS:
            words.append(word)
    of_words = {place for word in words for place in word}
    others = [place for place in range(len(weights)) if place not in of_words]
    order = np.array([*others, *itertools.chain(*words)], np.intp)
    begins = np.cumsum([len(others), *map(len, words)], dtype=np.intp)[:-1]
    shares = weights / total if total else weights
    return Weighed(terms.indices[order], shares[order], begins, weight=float(weights.sum()))


def _weight(text: str) -> float:
    """What the different terms of a text weigh together."""
    terms = query_terms(text, of_stop_words=False, each_once=True)
    return float((terms.values * _rarity(terms.indices)).sum())


def passages(task: str, content: str) -> Passages:
    """The terms of each passage of an item; each passage is read with the item's task."""
    return passages_of([(task, content)])[0]


def passages_of(items: Iterable[tuple[str, str]]) -> list[Passages]:
    """The terms of each passage of several items, given as task and content, in half of the time."""
    texts = [_passages(*item) for item in items]
    terms = iter(documents_terms([text for each in texts for text in each]))
    return [tuple(marked(text, next(terms).indices) for text in each) for each in texts]


def _passages(task: str, content: str) -> list[str]:
    content = content[:MOST_CHARACTERS]
    size = len(content.encode("utf-8", "replace"))
    if size <= PASSAGE + _OVERLAP:
        return [f"{task}\n{content}"]
    step, overlap = PASSAGE * len(content) // size, _OVERLAP * len(content) // size
    return [f"{task}\n{content[at : at + step + overlap]}" for at in range(0, len(content), step)]


def covered(query: Weighed, item: Passages) -> float:
    """The share of the query's weight that the best passage of an item has."""
    return covered_by_each(query, [item])[0]


def covered_by_each(query: Weighed, items: Sequence[Passages]) -> list[float]:
    """`covered` of several items, in less than half of the time of one after another."""
    whole = _covered_by_each(query, items)
    if query.questions is None:
        return whole
    return list(map(max, whole, covered_by_each(query.questions, items)))


def _covered_by_each(query: Weighed, items: Sequence[Passages]) -> list[float]:
    every = [passage for item in items for passage in item]
    if not len(query.terms) or not any(map(len, every)):
        return [0.0] * len(items)
    shares = iter(_shares(query, every).tolist())
    best = [max((next(shares) for _ in item), default=0.0) for item in items]
    if not query.whose:
        return best
    return [share * share_of(query.whose, item) for share, item in zip(best, items, strict=True)]


def joined(words: float, cosine: float | None, meaning: bool) -> float:
    """The match by words, and of what the words do not cover the part that a sentence model's cosine covers.

    Both kinds of evidence add up, and neither takes from the other. Hashed vectors (`meaning` False) repeat the words
    with noise and do not join.
    """
    if not meaning or cosine is None:
        return words
    near = min(1.0, max(0.0, (cosine - UNRELATED) / (1 - UNRELATED)))
    return words + (1.0 - words) * near


class Matches:
    """The matches of the items of one search, computed for all whose passages were read when one is asked for."""

    def __init__(
        self,
        query: Weighed,
        read: Mapping[str, Passages],
        cosine_of: Callable[[str], float | None],
        *,
        meaning: bool,
        readers_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._query = query
        self._read = read
        self._cosine_of = cosine_of
        self._meaning = meaning
        self._readers_of = readers_of
        self._words: dict[str, float] = {}

    def of(self, item_id: str, beside: str | None) -> float:
        """The match of an item; of one that stands beside a hit, LENT_MATCH of that one's where it is more."""
        lent = 0.0 if beside is None else LENT_MATCH * self._of_its_own(beside)
        return round(max(self._of_its_own(item_id), lent), 4)

    def _of_its_own(self, item_id: str) -> float:
        if item_id not in self._words:
            fresh = {each: read for each, read in self._read.items() if each not in self._words}
            self._words |= self._by_words(fresh)
        return joined(self._words[item_id], self._cosine_of(item_id), self._meaning)

    def _by_words(self, fresh: Mapping[str, Passages]) -> dict[str, float]:
        if not self._query.names_somebody:
            return dict(zip(fresh, covered_by_each(self._query, list(fresh.values())), strict=True))
        return {each: covered(self._query.of(self._readers_of(each)), read) for each, read in fresh.items()}


def _shares(query: Weighed, passages: Sequence[NDArray[np.uint32]]) -> NDArray[np.float64]:
    """The share of the query's weight that each passage has. The terms of all are looked for at once, as the lower
    half of a number whose upper half is that of their passage."""
    numbers = np.arange(len(passages), dtype=np.uint64) << np.uint64(32)
    terms = np.repeat(numbers, [len(each) for each in passages]) | np.concatenate(passages)
    asked = numbers[:, np.newaxis] | query.terms
    has = terms.take(terms.searchsorted(asked), mode="clip") == asked
    shares = has * query.shares
    share = shares.sum(axis=1)
    if len(query.words):
        alone = np.add.reduceat(has, query.words, axis=1, dtype=np.intp) < FEWEST_FRAGMENTS
        share -= (1 - LONE_FRAGMENT) * (np.add.reduceat(shares, query.words, axis=1) * alone).sum(axis=1)
    return np.asarray(np.minimum(1.0, share))


def _rarity(terms: NDArray[np.uint32]) -> NDArray[np.float64]:
    """BM25's inverse document frequency over the background; an unknown term is as rare as can be."""
    known, shares = _background()
    at = np.minimum(np.searchsorted(known, terms), len(known) - 1)
    frequency = np.where(known[at] == terms, shares[at], 0.0) * _TEXTS
    return np.asarray(np.log1p((_TEXTS - frequency + 0.5) / (frequency + 0.5)))


@cache
def _background() -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    with np.load(BACKGROUND) as file:
        return file["terms"], file["shares"].astype(np.float64)
