"""Mixed history for the benchmarks: what a node of 500 owners keeps. Half of them are persons, whose words are sealed.

Of its events 40 % are recalls, 25 % save an item, 15 % rate one, 8 % revise one, 5 % patch a profile; the others share
items, focus goals, evolve and merge, and some are refused. The words are made up (bench/words.py). The same seed gives
the same events, ids and times included; only the seals differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from bench.words import Words
from kledger.contract.knowledge import AclEntry, Case, Source
from ledger.event import Fact, Lineage, NewEvent
from ledger.events.goal import GoalFocused, goal_entity_id
from ledger.events.knowledge import (
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRated,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeShared,
)
from ledger.events.profile import ProfileCreated, ProfilePatched, profile_id
from ledger.events.recall import Ranking, RecallServed, ServedItem

OWNERS = 500
SHARES = {
    "recall": 0.40,
    "save": 0.25,
    "rate": 0.15,
    "revise": 0.08,
    "patch": 0.05,
    "share": 0.02,
    "focus": 0.02,
    "evolve": 0.01,
    "merge": 0.005,
    "refuse": 0.015,
}
SERVED = 5
TYPES = ("tool", "strategy", "usecase", "definition", "plan")
# Words of each text, so that an event with a content, as one with a profile, has about 1 KB.
TASK, CONTENT, CASE, QUERY, NOTE = 8, 55, 40, 9, 12
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
_DRAWN_AT_ONCE = 8_192
_EVENTS_A_TRACE = 20

Said = tuple[Fact, str, str]
"""A fact, what it is about, and its actor."""


def owners() -> list[str]:
    """OWNERS of them, every second one a person."""
    return [f"user:p{n}" if n % 2 else f"agent:a{n}" for n in range(OWNERS)]


def profile_patch(owner: str, begun: bool, words: Words, number: int) -> Said:
    """A person's memory, begun or patched: entries with notes, as agents state them."""
    fact: ProfileCreated | ProfilePatched
    if begun:
        people = [{"name": words.text(2), "notes": words.text(NOTE), "meta": {"confidence": 0.5}} for _ in range(3)]
        patch = {"occupation": words.text(2), "people": people, "custom_rules": [words.text(NOTE), words.text(TASK)]}
        fact = ProfilePatched(owner=owner, memory_type="user", patch=patch | {f"note_{number % 9}": words.text(TASK)})
    else:
        fact = ProfileCreated(owner=owner, memory_type="user", content={})
    return fact, profile_id(owner, "user"), owner


def profile_history(count: int, seed: int = 1) -> Iterator[NewEvent]:
    """`count` events about the memories of OWNERS, all persons; every one is accepted by the views."""
    random, words = Random(seed), Words(seed)
    begun: set[str] = set()
    for number in range(count):
        person = f"user:p{random.randrange(OWNERS)}"
        yield _event(profile_patch(person, person in begun, words, number), seed, number, random)
        begun.add(person)


def _event(said: Said, seed: int, number: int, random: Random) -> NewEvent:
    fact, about, actor = said
    return NewEvent(
        fact,
        about,
        actor,
        lineage=Lineage(f"trace-{seed}-{number // _EVENTS_A_TRACE}", f"message-{seed}-{number}"),
        id=str(UUID(int=random.getrandbits(128), version=4)),
        time=_BEGAN + timedelta(seconds=number),
    )


class MixedHistory:
    """`count` events to iterate over, once. It knows who owns what so far, and how many are to be `refused`."""

    def __init__(self, count: int, seed: int = 1) -> None:
        self.refused = 0
        self._count, self._seed = count, seed
        self._random, self._words = Random(seed), Words(seed)
        self._owners = owners()
        self._owned: dict[str, list[str]] = {owner: [] for owner in self._owners}
        self._owner_of: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self._merged = ""
        self._begun: set[str] = set()
        self._says = {
            "recall": self._recall,
            "save": self._save,
            "rate": self._rate,
            "revise": self._revise,
            "share": self._share,
            "focus": self._focus,
            "evolve": self._evolve,
            "merge": self._merge,
            "refuse": self._refuse,
        }

    async def persons_of(self, _org: str, items: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The persons to whom these items belong, as the view of a node knows them."""
        known = {item: self._owner_of.get(item, "") for item in items}
        return {item: [owner] for item, owner in known.items() if owner.startswith("user:")}

    def __iter__(self) -> Iterator[NewEvent]:
        kinds, chances = list(SHARES), list(SHARES.values())
        for start in range(0, self._count, _DRAWN_AT_ONCE):
            drawn = self._random.choices(kinds, chances, k=min(_DRAWN_AT_ONCE, self._count - start))
            for number, kind in enumerate(drawn, start):
                yield _event(
                    self._said(kind, self._random.choice(self._owners), number), self._seed, number, self._random
                )

    def _said(self, kind: str, owner: str, number: int) -> Said:
        if kind == "patch":
            begun = owner in self._begun
            self._begun.add(owner)
            return profile_patch(owner, begun, self._words, number)
        return self._says[kind if self._owned[owner] else "save"](owner, number)

    def _item(self, owner: str) -> str:
        """One of an owner's items, the newer the likelier."""
        owned = self._owned[owner]
        return owned[int(len(owned) * self._random.random() ** 0.5)]

    def _changed(self, item: str) -> int:
        """The version of an item before the next one, which is being made."""
        before = self._versions[item]
        self._versions[item] = before + 1
        return before

    def _served(self, owner: str) -> list[ServedItem]:
        best = self._random.random()
        items = dict.fromkeys(self._item(owner) for _ in range(SERVED))
        return [
            ServedItem(id=item, version=self._versions[item], relevance=best / rank)
            for rank, item in enumerate(items, 1)
        ]

    def _recall(self, owner: str, number: int) -> Said:
        items = self._served(owner)
        ranking = Ranking(policy="4f1c2a9d0b7e", matches=[round(self._random.random(), 4) for _ in items])
        fact = RecallServed(
            kind=self._random.choice(("search", "search", "recall", "page")),
            query=self._words.text(QUERY),
            visible_scopes=[owner, "public"],
            items=items,
            view_position=number,
            ranking=ranking,
        )
        return fact, f"recall-{self._seed}-{number}", owner

    def _save(self, owner: str, number: int) -> Said:
        item = f"item-{self._seed}-{number}"
        self._owned[owner].append(item)
        self._owner_of[item], self._versions[item] = owner, 1
        fact = KnowledgeSaved(
            types=[TYPES[number % len(TYPES)]],
            task=self._words.text(TASK),
            content=self._words.text(CONTENT),
            tags={"lang": "mixed", "n": number},
            scopes=["public"] if number % 3 else [owner],
            owner=owner,
            source=Source(name="bench", urls=["https://example.org/bench"], agent_id=owner),
        )
        return fact, item, owner

    def _rate(self, owner: str, _number: int) -> Said:
        case = Case(task=self._words.text(TASK), outcome=self._words.text(CASE))
        fact = KnowledgeRated(verdict="helpful" if self._random.random() < 0.8 else "harmful", case=case)
        return fact, self._item(owner), owner

    def _revise(self, owner: str, _number: int) -> Said:
        item = self._item(owner)
        return self._revision(self._changed(item)), item, owner

    def _revision(self, version: int) -> KnowledgeRevised:
        content, reason = self._words.text(CONTENT), self._words.text(NOTE)
        return KnowledgeRevised(content=content, reason=reason, expected_version=version)

    def _share(self, owner: str, _number: int) -> Said:
        item = self._item(owner)
        self._changed(item)
        return KnowledgeShared(acl=[AclEntry(entity=self._random.choice(self._owners), permission="read")]), item, owner

    def _focus(self, owner: str, number: int) -> Said:
        goal = f"goal-{number % 7}"
        description = self._words.text(QUERY)
        fact = GoalFocused(goal_id=goal, owner=owner, description=description, items=self._served(owner))
        return fact, goal_entity_id(owner, goal), owner

    def _evolve(self, owner: str, number: int) -> Said:
        item = self._item(owner)
        version, content = self._changed(item), self._words.text(CONTENT)
        return KnowledgeEvolved(evolution=f"evolution-{number}", base_version=version, content=content), item, owner

    def _merge(self, owner: str, number: int) -> Said:
        item, into = self._item(owner), self._item(owner)
        if item == into:
            return self._revise(owner, number)
        self._changed(item)
        self._owned[owner].remove(item)
        self._merged = item
        return KnowledgeMerged(into=into, slim=f"slim-{number}"), item, owner

    def _refuse(self, owner: str, number: int) -> Said:
        """What does not count: of somebody else's item, of no item, of an old version, merged once more."""
        self.refused += 1
        item = self._item(owner)
        if number % 4 == 0:
            return self._revision(self._versions[item]), item, f"agent:other-{number}"
        if number % 4 == 1:
            return self._rate(owner, number)[0], f"nobody-{number}", owner
        if number % 4 == 2 or not self._merged:
            return self._revision(self._versions[item] + 1), item, owner
        return KnowledgeMerged(into=item, slim=f"slim-{number}"), self._merged, self._owner_of[self._merged]
