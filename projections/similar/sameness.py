"""Sameness check: whether two texts say the same, and how similar they are. The exact check of every candidate pair.

Differences are checked word by word. Function words and courtesies may differ, synonyms and inflections match, and a
word that occurs nowhere else may be a typo of another. A number, a flag, a name, a negation, the order of names, or who
does what to whom may not differ. What is left over may be on one side only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from projections.similar.exchanged import exchanged
from projections.similar.rewordings import (
    CHINESE_EXCHANGES,
    LIGHT_CHARACTERS,
    LIGHT_WORDS,
    SHARP_CHARACTERS,
    SHARP_WORDS,
    meaning,
    turning,
)
from projections.similar.statements import Statement

_CHARACTER_WEIGHT = 0.5  # a Chinese word has two characters
_TYPO_LENGTH = 5  # in shorter words one letter makes too many other words
_TYPO_RARITY = 50  # a frequent typo is still this much rarer than the word
_BY = "by"  # on one side alone, it says who did what the other one says that somebody does
_MOST_LEFT = 12  # the most differing words that are compared for typos: with more, it is no near-duplicate


def similarity(one: Statement, other: Statement, used_by: Mapping[str, int]) -> float | None:
    """The share of two texts that both have, 0 to 1; None when they differ in a fact.

    `used_by` is the document frequency of each word: a word that occurs nowhere else may be a typo.
    """
    if one.label and other.label and one.label != other.label:
        return None
    left, right = one.words - other.words, other.words - one.words
    if _states_sharply(left, one, other) or _states_sharply(right, other, one):
        return None
    if left and right:
        left, right = _without_rewordings(left, right, used_by)
    if left and right:
        return None  # each has words that the other lacks: an exchange, such as of one name for another
    if any(word in turning() or meaning(word) in turning() for word in (*left, *right)):
        return None
    odd_characters = _odd_characters(one.characters, other.characters)
    if odd_characters is None:
        return None
    if _orders_differ(one, other) or _roles_exchanged(one.roles, other.roles):
        return None
    if exchanged(one.clauses, other.clauses) or _voices_exchanged(one, other):
        return None
    lacking = left.total() + right.total() + _CHARACTER_WEIGHT * odd_characters
    whole = max(_weight(one), _weight(other))
    return 1.0 if whole == 0 else max(0.0, 1 - lacking / whole)


def _odd_characters(mine: Counter[str], others: Counter[str]) -> int | None:
    """The number of Chinese characters on one side only; None when they change the meaning."""
    left, right = mine - others, others - mine
    if left and right:
        for gone, come in CHINESE_EXCHANGES:
            while gone <= left and come <= right:
                left, right = left - gone, right - come
    odd = [[character for character in side if character not in LIGHT_CHARACTERS] for side in (left, right)]
    if all(odd) or not SHARP_CHARACTERS.isdisjoint(odd[0] + odd[1]):
        return None
    return sum(left[character] for character in odd[0]) + sum(right[character] for character in odd[1])


def _states_sharply(odd: Counter[str], mine: Statement, other: Statement) -> bool:
    """Whether a sharp word is among the differing ones, except a repeated name; removes light words from them."""
    for word in list(odd):
        if word in mine.sharp:
            if word in SHARP_WORDS or word not in other.words or not word.isalpha():
                return True
        elif word in LIGHT_WORDS:
            del odd[word]
    return False


def _without_rewordings(
    left: Counter[str], right: Counter[str], used_by: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """The differing words of both without those that match each other as synonyms or typos."""
    meant_left, meant_right = _by_meaning(left), _by_meaning(right)
    if max(left.total(), right.total()) <= _MOST_LEFT:
        _pair_typos(left, right, meant_left, meant_right, used_by)
    return Counter(meant_left) - Counter(meant_right), Counter(meant_right) - Counter(meant_left)


def _by_meaning(words: Counter[str]) -> Counter[str]:
    meant: Counter[str] = Counter()
    for word, count in words.items():
        meant[meaning(word)] += count
    return meant


def _pair_typos(
    left: Iterable[str],
    right: Iterable[str],
    meant_left: Counter[str],
    meant_right: Counter[str],
    used_by: Mapping[str, int],
) -> None:
    """Remove the pairs of a word and its typo from both counters."""
    for word in left:
        for another in right:
            mine, others = meaning(word), meaning(another)
            if mine == others or not meant_left[mine] or not meant_right[others]:
                continue
            rare, usual = sorted((used_by.get(word, 0), used_by.get(another, 0)))
            if (rare <= 1 or rare * _TYPO_RARITY <= usual) and one_slip_apart(word, another):
                both = min(meant_left[mine], meant_right[others])
                meant_left[mine] -= both
                meant_right[others] -= both


def one_slip_apart(one: str, other: str) -> bool:
    """Whether two words differ by one insertion, deletion, substitution or transposition of letters."""
    if one == other or abs(len(one) - len(other)) > 1 or min(len(one), len(other)) < _TYPO_LENGTH - 1:
        return False
    if max(len(one), len(other)) < _TYPO_LENGTH:
        return False
    at = 0
    shorter = min(len(one), len(other))
    while at < shorter and one[at] == other[at]:
        at += 1
    if len(one) == len(other):
        exchanged = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
        return exchanged or (at > 0 and one[at + 1 :] == other[at + 1 :])
    longer, shorter_word = (one, other) if len(one) > len(other) else (other, one)
    return longer[at + 1 :] == shorter_word[at:] and at > 0


def _orders_differ(one: Statement, other: Statement) -> bool:
    """Whether the names in both texts are in different orders; sentences may be reordered or joined."""
    if one.orders == other.orders:
        return False
    both = one.names & other.names
    mine, others = ([tuple(filter(both.__contains__, order)) for order in text.orders] for text in (one, other))
    return not (_all_within(mine, others) or _all_within(others, mine))


def _all_within(sentences: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> bool:
    whole = "\0" + "\0".join(word for sentence in others for word in sentence) + "\0"
    return all("\0" + "\0".join(sentence) + "\0" in whole for sentence in sentences if sentence)


def _roles_exchanged(mine: frozenset[tuple[str, str, str]], others: frozenset[tuple[str, str, str]]) -> bool:
    """Whether the terms before and after a linking word in one text are exchanged in the other."""
    only_mine, only_others = mine - others, others - mine
    return any((after, link, before) in only_others for before, link, after in only_mine if before != after)


def _voices_exchanged(one: Statement, other: Statement) -> bool:
    """Whether a text says that something is done to somebody where the other says that they do it: Tom was hit (by Ann)
    and Tom hit (Ann)."""
    for mine, others in ((one, other), (other, one)):
        if (mine.suffering - mine.doing) & (others.doing - others.suffering):
            return True
        if mine.suffering and _BY in mine.words and _BY not in others.words:
            return True
    return False


def _weight(text: Statement) -> float:
    light = sum(text.words[word] for word in LIGHT_WORDS if word in text.words)
    return text.words.total() - light + _CHARACTER_WEIGHT * text.characters.total()
