"""Sameness check: whether two texts say the same, and how similar they are. The exact check of every candidate pair.

Differences are checked word by word. Function words and courtesies may differ, synonyms and inflections match, and a
word that occurs nowhere else may be a typo of another. A number, a flag, a name, a negation, the order of names, or who
does what to whom may not differ. What is left over may be on one side only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from projections.similar.rewordings import (
    CHINESE_EXCHANGES,
    LIGHT_CHARACTERS,
    LIGHT_WORDS,
    SHARP_CHARACTERS,
    SHARP_WORDS,
    meaning,
)
from projections.similar.statements import Statement

_CHARACTER_WEIGHT = 0.5  # a Chinese word has two characters
_TYPO_LENGTH = 5  # in shorter words one letter makes too many other words
_TYPO_RARITY = 50  # a typo that several make is still so much rarer than the word
_MOST_LEFT = 12  # pairs of odd words that are looked at for typos: more than that is no near-duplicate


def similarity(one: Statement, other: Statement, used_by: Mapping[str, int]) -> float | None:
    """How much of what two texts say is said by both, 0 to 1; None when they differ in a fact.

    `used_by` says in how many of the texts at hand a word occurs: a typo is a word that nobody else uses.
    """
    if one.label and other.label and one.label != other.label:
        return None
    left, right = one.words - other.words, other.words - one.words
    if _states_sharply(left, one, other) or _states_sharply(right, other, one):
        return None
    if left and right:
        left, right = _without_rewordings(left, right, used_by)
    if left and right:
        return None  # each says something that the other does not: an exchange, as of one name for another
    odd_characters = _odd_characters(one.characters, other.characters)
    if odd_characters is None:
        return None
    if _orders_differ(one, other) or _roles_exchanged(one.roles, other.roles):
        return None
    lacking = left.total() + right.total() + _CHARACTER_WEIGHT * odd_characters
    whole = max(_weight(one), _weight(other))
    return 1.0 if whole == 0 else max(0.0, 1 - lacking / whole)


def _odd_characters(mine: Counter[str], others: Counter[str]) -> int | None:
    """How many Chinese characters stand on one side only; None when they change what is said."""
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
    """Whether something sharp is among the odd words; light ones are taken out. Another mention of a name is not."""
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
    """The odd words of both without those that stand for one another."""
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
    """Take out of both what one spells wrongly."""
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
    """Whether two words differ by one letter too many, one too few, one wrong, or two neighbours exchanged."""
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
    """Whether what is sharp in both stands in another order; sentences may change places or be joined."""
    if one.orders == other.orders:
        return False
    both = one.names & other.names
    mine, others = ([tuple(filter(both.__contains__, order)) for order in told.orders] for told in (one, other))
    return not (_all_within(mine, others) or _all_within(others, mine))


def _all_within(sentences: list[tuple[str, ...]], others: list[tuple[str, ...]]) -> bool:
    whole = "\0" + "\0".join(word for sentence in others for word in sentence) + "\0"
    return all("\0" + "\0".join(sentence) + "\0" in whole for sentence in sentences if sentence)


def _roles_exchanged(mine: frozenset[tuple[str, str, str]], others: frozenset[tuple[str, str, str]]) -> bool:
    """Whether what stood before a link in one stands behind it in the other, and the other way round."""
    only_mine, only_others = mine - others, others - mine
    return any((after, link, before) in only_others for before, link, after in only_mine if before != after)


def _weight(told: Statement) -> float:
    light = sum(told.words[word] for word in LIGHT_WORDS if word in told.words)
    return told.words.total() - light + _CHARACTER_WEIGHT * told.characters.total()
