"""Statements that are said again: which of many say the same as one that a person retired or corrected.

A tombstone holds a statement where its item's owner is the statement's or among its scopes, or a group among its scopes
reads the item; and where whoever states it reads the item. What a person says of themselves is held of that person
alone. What the item still says, or says again, is not held.
Sameness is that of near-duplicates (sameness.py), whatever a text is dressed in (undisguised.py), of each pair on its
own: what else is asked changes no answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from kledger.contract.bounds import THRESHOLD
from kledger.contract.scopes import PERSONAL, Caller, type_of
from ledger.event import JsonObject
from ledger.events.statement import held_id
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.visibility import readers
from projections.similar.first_person import speaks_of_itself
from projections.similar.rewordings import LIGHT_WORDS
from projections.similar.sameness import similarity
from projections.similar.statements import Statement, statement
from projections.similar.undisguised import number_of, undisguised
from projections.vectors.tokens import one_form
from projections.views.access import LIST, LISTED, listed, readable_by
from projections.words import CJK

_CANDIDATES = 8
"""The most tombstones with which one statement is compared exactly: those that share the most words with it."""
_LEAST_SHARED = 0.4
"""The share of a text's words that a candidate has; what differs may be synonyms."""
_LOOKED_UP, _MOST_WITH_WORD = 12, 500
"""So many of a statement's words are looked up, the rarest, and so many tombstones of each."""
_ENOUGH = 4.0
"""From this weight on (words; half of that for a Chinese character) a content says enough to be compared alone."""
_PIECE = re.compile(rf"[^\W_{CJK}]+|[{CJK}]+")
_CHINESE = re.compile(f"[{CJK}]")
_NO_FREQUENCIES: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class Stated:
    """What is about to be saved: its words, its owner and its scopes."""

    task: str
    content: str
    owner: str
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SaidAgain:
    """The tombstone of a statement, and the id under which the statement is held.

    `standing` is what became of the same statement of that owner to those readers before: held or dropped; None where
    it was not said again yet. `held_at` is the position of the event that held it then.
    """

    item_id: str
    retired_at: int
    held_id: str
    standing: str | None
    held_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Tombstone:
    item_id: str
    position: int
    owner: str
    readers: list[str]
    task: str
    content: str

    def concerns(self, stated: Stated) -> bool:
        if self.owner == stated.owner:
            return True
        if all(type_of(owner) == "user" for owner in (self.owner, stated.owner)) and speaks_of_itself(stated.content):
            return False  # what one says of oneself is another statement than the same words of somebody else
        return self.owner in stated.scopes or not _groups(stated.scopes).isdisjoint(self.readers)


_READERS = readers("k.")
_FOUND = f"""
SELECT t.item_id, t.position, k.owner, {_READERS} AS readers, v.task, v.content,
    CASE WHEN k.status IN ('active', 'proposed') THEN k.task END AS task_now,
    CASE WHEN k.status IN ('active', 'proposed') THEN k.content END AS content_now
FROM tombstones AS t
JOIN knowledge AS k ON k.org = t.org AND k.id = t.item_id
JOIN knowledge_versions AS v ON v.valid_from = t.stated
WHERE t.org = ? AND NOT v.erased AND NOT k.erased
    AND (k.owner IN ({LISTED}) OR list_has_any({_READERS}, {LIST})) AND {{may}}
ORDER BY t.position DESC
"""
_STANDING = f"""
SELECT owner, item_id, retired_at, list_sort(list_distinct(scopes)) AS scopes, id, status,
    requested_position FROM held_statements
WHERE org = ? AND item_id IN ({LISTED})
ORDER BY position
"""


def said_again(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, stated: Mapping[int, Stated]
) -> dict[int, SaidAgain]:
    """Those of these statements that a person retired or corrected, by the keys of `stated`.

    What was released before, of the same owner and with the same scopes, is not among them.
    """
    if not stated or not cursor.execute("SELECT 1 FROM tombstones LIMIT 1").fetchall():
        return {}
    tombstones = _tombstones(cursor, org, caller, stated.values())
    found = {}
    if tombstones:
        search = _Search(tombstones)
        found = {key: match for key, each in stated.items() if (match := search.best(each)) is not None}
    return _with_standing(cursor, org, stated, found) if found else {}


def _tombstones(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, stated: Iterable[Stated]
) -> list[_Tombstone]:
    """The tombstones that concern any of these and that the caller may read, the latest first."""
    owners = {each.owner for each in stated}
    scopes = {scope for each in stated for scope in each.scopes}
    may, values = readable_by(caller, "k.")
    asked = [org, listed(sorted(owners | scopes)), listed(sorted(_groups(scopes))), *values]
    rows = named_rows(cursor, _FOUND.format(may=may), asked)
    return [_tombstone(row) for row in rows if not _says_it_now(row)]


def _tombstone(row: JsonObject) -> _Tombstone:
    return _Tombstone(*(row[name] for name in ("item_id", "position", "owner", "readers", "task", "content")))


def _says_it_now(row: JsonObject) -> bool:
    """Whether the item says the same as its tombstone: a slip of the pen was mended, or it says again what it said."""
    if row["content_now"] is None:
        return False
    return _same(Words(row["task"], row["content"]), Words(row["task_now"], row["content_now"]))


def _with_standing(
    cursor: duckdb.DuckDBPyConnection, org: str, stated: Mapping[int, Stated], found: Mapping[int, _Tombstone]
) -> dict[int, SaidAgain]:
    """What was found, with what became of it before; without what was released then."""
    about = {key: _about(stated[key], each) for key, each in found.items()}
    items = sorted({each.item_id for each in found.values()})
    rows = cursor.execute(_STANDING, [org, listed(items)]).fetchall()
    before = {(owner, item, at, tuple(scopes)): tuple(kept) for owner, item, at, scopes, *kept in rows}
    again = {}
    for key, each in about.items():
        name, standing, held_at = before.get(each, (_held_id(org, each), None, None))
        if standing != "released":
            again[key] = SaidAgain(found[key].item_id, found[key].position, name, standing, held_at)
    return again


_About = tuple[str, str, int, tuple[str, ...]]
"""Owner, item and position of the tombstone, scopes: what these are of is held once."""


def _about(stated: Stated, tombstone: _Tombstone) -> _About:
    return stated.owner, tombstone.item_id, tombstone.position, tuple(sorted(set(stated.scopes)))


def _held_id(org: str, about: _About) -> str:
    """An id that follows from whom and what it is about, and from no words."""
    owner, item_id, position, scopes = about
    return held_id(org, owner, (item_id, str(position), *scopes))


@dataclass(slots=True)
class Words:
    """A text to compare: its content, and the whole of it with the task in front, which is seldom asked for."""

    task: str
    content: str
    said: Statement = field(init=False)
    _whole: Statement | None = None

    def __post_init__(self) -> None:
        self.said = statement(undisguised(self.content))

    @property
    def whole(self) -> Statement:
        """Task and content in one."""
        if self._whole is None:
            self._whole = statement(f"{undisguised(self.task)}\n{undisguised(self.content)}")
        return self._whole

    @property
    def weight(self) -> float:
        """How much the content says."""
        return self.said.words.total() + 0.5 * self.said.characters.total()


class _Search:
    """The tombstones by the words in them: candidates are looked up, and compared exactly."""

    def __init__(self, tombstones: Sequence[_Tombstone]) -> None:
        self._tombstones = tombstones
        self._with_word: dict[str, list[int]] = {}
        self._words: dict[int, Words] = {}
        for place, each in enumerate(tombstones):
            for word in _pieces(each.content):
                self._with_word.setdefault(word, []).append(place)

    def best(self, stated: Stated) -> _Tombstone | None:
        """The latest tombstone that says the same and concerns the statement; None where there is none."""
        pieces = _pieces(stated.content)
        known = [self._with_word[word] for word in pieces if word in self._with_word]
        if len(known) < _LEAST_SHARED * len(pieces):
            return None
        looked_up = sorted(known, key=len)[:_LOOKED_UP]
        shared: Counter[int] = Counter()
        for places in looked_up:
            shared.update(places[:_MOST_WITH_WORD])
        least = _LEAST_SHARED * len(looked_up)
        likely = [place for place, times in shared.items() if times >= least]
        likely.sort(key=lambda place: (-shared[place], place))
        candidates = [place for place in likely if self._tombstones[place].concerns(stated)][:_CANDIDATES]
        if not candidates:
            return None
        words = Words(stated.task, stated.content)
        same = [place for place in candidates if _same(self._of(place), words)]
        return self._tombstones[min(same)] if same else None

    def _of(self, place: int) -> Words:
        if place not in self._words:
            self._words[place] = Words(self._tombstones[place].task, self._tombstones[place].content)
        return self._words[place]


def _same(one: Words, other: Words) -> bool:
    """Whether two items say the same: with their contents, where these say enough alone, or as a whole.

    A model words the task of what it finds anew each time.
    """
    numbers = {number_of(one.content), number_of(other.content)} - {None}
    share = similarity(one.said, other.said, _NO_FREQUENCIES) if len(numbers) < 2 else None
    if share is None:  # they differ in a fact
        return False
    if share >= THRESHOLD and min(one.weight, other.weight) >= _ENOUGH:
        return True
    share = similarity(one.whole, other.whole, _NO_FREQUENCIES)
    return share is not None and share >= THRESHOLD


def _groups(scopes: Iterable[str]) -> set[str]:
    """Those of these scopes that have members, and public."""
    return {scope for scope in scopes if type_of(scope) not in PERSONAL}


def _pieces(text: str) -> frozenset[str]:
    """What tombstones are looked up by: words that say something, and pairs of Chinese characters."""
    pieces: set[str] = set()
    for piece in _PIECE.findall(one_form(undisguised(text)).casefold()):
        if _CHINESE.match(piece):
            pieces.update(piece[at : at + 2] for at in range(max(1, len(piece) - 1)))
        elif piece not in LIGHT_WORDS:
            pieces.add(piece)
    return frozenset(pieces)
