"""What was stated so far, as the generator takes it to be: so that an event can be about what is there.

A course makes one well-formed event after another, which count: their actor may state them, what they are about is
there, at the version and in the stage that they name. It is bounded: what was stated long ago is dropped here, not in
the node.
"""

from __future__ import annotations

import random
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from ledger.event import Fact
from ledger.events import FACTS
from ledger.events.goal import goal_entity_id
from ledger.events.process import ProcessFact
from ledger.vocabulary.examples import EXAMPLES
from ledger.wire.envelope import encode

OWNERS = ("agent:scribe", "agent:scribe", "user:ada", "agent:mallory", "user:bob")
GROUPS = ("project:ledger", "team:platform", "org:default")
_JUDGED = ("knowledge.rated", "knowledge.scored", "knowledge.confirmed")
_OF_SHORT = ("knowledge.promoted", "knowledge.expired")
_NEEDED = {"knowledge.restored": "retired", "knowledge.unmerged": "merged"}
_BECOMES = {"retired": "retired", "restored": "active", "merged": "merged", "unmerged": "active"}


@dataclass(slots=True)
class Thing:
    """An item, a resource, a profile or a process. What is not known of it for sure is None."""

    id: str
    owner: str
    version: int | None = 1
    status: str | None = "active"
    scopes: list[str] = field(default_factory=list)
    writers: list[str] = field(default_factory=list)
    short: bool = False

    def doubtful(self) -> None:
        """It may have changed: what depends on its version or status is not stated of it any more."""
        self.version = self.status = None


@dataclass(slots=True)
class Event:
    """A document, what it is about, and what changes when it counts."""

    document: dict[str, Any]
    about: Thing | None = None
    counts: Callable[[], None] = lambda: None

    def settle(self, as_it_is: bool) -> None:
        """State it as it is, or otherwise: then nobody knows whether it counts."""
        if as_it_is:
            self.counts()
        elif self.about is not None:
            self.about.doubtful()


class Course:
    """Well-formed events without end."""

    def __init__(self, chance: random.Random, words: Callable[[], str]) -> None:
        self._chance, self._words = chance, words
        self._made = 0
        self.items: deque[Thing] = deque(maxlen=300)
        self.resources: deque[Thing] = deque(maxlen=100)
        self._processes: dict[str, deque[Thing]] = {}
        self._profiles: dict[str, Thing] = {}

    def event(self, kind: str) -> Event:
        """One of this kind; of what begins it, where nothing is there that it could be about."""
        made = self._of(kind)
        document = made.document
        document["id"] = str(uuid.UUID(int=self._chance.getrandbits(128)))
        document["traceid"] = f"trace-{self._chance.randrange(50)}"
        document["time"] = f"2026-03-05T{self._chance.randrange(24):02}:00:00Z"
        return made

    def item(self) -> Thing | None:
        """An item that is there, if any."""
        return self._chance.choice(self.items) if self.items else None

    def _of(self, kind: str) -> Event:
        fact = FACTS[kind]
        if issubclass(fact, ProcessFact):
            return self._process(fact)
        if kind == "knowledge.saved":
            return self._saved()
        if kind == "resource.saved":
            return self._resource_saved()
        if kind.startswith("knowledge."):
            return self._about_item(kind)
        if kind.startswith("resource."):
            return self._about_resource(kind)
        if kind.startswith("profile."):
            return self._profile(kind)
        return self._other(kind)

    def _document(self, kind: str, entity_id: str, actor: str, **data: Any) -> dict[str, Any]:
        document: dict[str, Any] = orjson.loads(encode(EXAMPLES[kind]))
        document["subject"] = f"{FACTS[kind].entity()}/{entity_id}"
        document["actor"] = actor
        document["data"].update(data)
        return document

    def _new(self, entity: str) -> str:
        self._made += 1
        return f"{entity}-{self._made}"

    def _saved(self) -> Event:
        owner = self._chance.choice(OWNERS)
        scopes = self._chance.choice((["public"], ["public"], [owner], [self._chance.choice(GROUPS), owner]))
        item = Thing(self._new("knowledge"), owner, scopes=scopes)
        said = {"owner": owner, "scopes": scopes, "content": self._words(), "task": self._words()}
        document = self._document("knowledge.saved", item.id, owner, **said)
        item.short = self._chance.random() < 0.3
        if item.short:
            document["data"]["memory"] = {"layer": "short", "kind": "mood", "lifetime": 1}
        elif self._chance.random() < 0.5:
            del document["data"]["memory"]
            document["dataschema"] = document["dataschema"].replace(":4", ":3")
        return Event(document, item, lambda: self.items.append(item))

    def _about_item(self, kind: str) -> Event:
        needed = _NEEDED.get(kind, "active")
        there = [one for one in self.items if one.status == needed and one.version is not None]
        if kind in _OF_SHORT:
            there = [one for one in there if one.short]
        if not there:
            return self._saved()
        item = self._chance.choice(there)
        if kind == "knowledge.expired":  # whether it is over yet is known to the broker alone
            return Event(self._document(kind, item.id, "user:local", after=1), item, item.doubtful)
        if kind in _JUDGED:
            return Event(self._judged(kind, item), item)
        document = self._document(kind, item.id, item.owner)
        data = document["data"]
        verb = kind.partition(".")[2]
        if verb == "revised":
            if item.writers and self._chance.random() < 0.5:
                document["actor"] = self._chance.choice(item.writers)
            data["content"] = self._words()
            if self._chance.random() < 0.5:
                data["expected_version"] = item.version
        if verb == "shared":
            data["acl"] = [{"entity": one, "permission": "read_write"} for one in sorted({*OWNERS} - {item.owner})[:2]]
        if verb == "evolved":
            data["base_version"] = item.version
        if verb == "reverted":
            data["scopes"] = item.scopes
            data["to_version"] = self._chance.randint(1, item.version or 1)
        if verb == "absorbed":
            data["merged"] = [one.id for one in self._chance.sample(list(self.items), min(2, len(self.items)))]
        if verb == "promoted":
            data["through"] = None
        if verb == "merged":
            data["into"] = self._chance.choice(self.items).id

        def counts() -> None:
            item.version = (item.version or 0) + 1
            item.status = _BECOMES.get(verb, item.status)
            item.short = item.short and verb != "promoted"
            if verb == "shared":
                item.writers = [one["entity"] for one in data["acl"]]

        return Event(document, item, counts)

    def _judged(self, kind: str, item: Thing) -> dict[str, Any]:
        groups = [one for one in item.scopes if one in GROUPS]
        through = self._chance.choice([*groups, None]) if groups else None
        anybody = through is not None or "public" in item.scopes
        document = self._document(kind, item.id, self._chance.choice(OWNERS) if anybody else item.owner)
        document["data"]["through"] = through
        if through is None:
            del document["data"]["through"]
            document["dataschema"] = document["dataschema"].replace(":2", self._chance.choice((":1", ":2")))
        return document

    def _resource_saved(self) -> Event:
        owner = self._chance.choice(OWNERS)
        own = [one for one in self.resources if one.owner == owner and one.version is not None]
        again = self._chance.choice(own) if own and self._chance.random() < 0.3 else None
        resource = again or Thing(self._new("code/part"), owner, version=0)
        said = {"owner": owner, "scopes": ["public"], "secure_body": None, "body": self._words()}
        document = self._document("resource.saved", resource.id, owner, **said)
        if again is not None and self._chance.random() < 0.5:
            document["data"]["expected_version"] = again.version

        def counts() -> None:
            resource.version, resource.status = (resource.version or 0) + 1, "active"
            if again is None:
                self.resources.append(resource)

        return Event(document, resource, counts)

    def _about_resource(self, kind: str) -> Event:
        needed = {"resource.restored": "retired", "resource.retired": "active"}.get(kind)
        there = [one for one in self.resources if one.version is not None and needed in (None, one.status)]
        if not there:
            return self._resource_saved()
        resource = self._chance.choice(there)

        def counts() -> None:
            resource.version = (resource.version or 0) + 1
            resource.status = _BECOMES.get(kind.partition(".")[2], resource.status)

        return Event(self._document(kind, resource.id, resource.owner), resource, counts)

    def _profile(self, kind: str) -> Event:
        owner, memory = f"user:p{self._chance.randrange(40)}", self._chance.choice(("user", "work"))
        profile = self._profiles.setdefault(f"{owner}/{memory}", Thing(f"{owner}/{memory}", owner, 0, "absent"))
        if profile.status == "absent":
            kind = "profile.created"
        elif kind == "profile.created" or profile.status != "active":
            kind = "profile.replaced"

        def counts() -> None:
            profile.status = "disabled" if kind == "profile.disabled" else "active"

        return Event(self._document(kind, profile.id, owner, owner=owner, memory_type=memory), profile, counts)

    def _process(self, fact: type[ProcessFact]) -> Event:
        entity = fact.entity()
        known = self._processes.setdefault(entity, deque(maxlen=40))
        there = [one for one in known if one.status in fact.follows]
        if not there:
            fact = next(one for one in FACTS.values() if one.entity() == entity and not _follows(one))  # type: ignore[assignment]
        process = self._chance.choice(there) if there else Thing(self._new(entity), self._chance.choice(OWNERS))
        document = self._document(fact.name, process.id, process.owner)
        data = document["data"]
        for name in ("item_id", "first", "second", "survivor", "winner"):
            if name in data and self.items:
                data[name] = self._chance.choice(self.items).id
        if "owner" in data:
            data["owner"] = process.owner
        if "scopes" in data:
            data["scopes"] = [process.owner]

        def counts() -> None:
            if not fact.repeatable:
                process.status = fact.verb()
            if not there:
                known.append(process)

        return Event(document, process, counts)

    def _other(self, kind: str) -> Event:
        if kind == "goal.focused":
            owner, goal = self._chance.choice(OWNERS), f"goal-{self._chance.randrange(60)}"
            return Event(self._document(kind, goal_entity_id(owner, goal), owner, owner=owner, goal_id=goal))
        if kind == "scope_type.registered":
            name = self._chance.choice(("department", "guild", "squad"))
            return Event(self._document(kind, name, "user:local", type=name))
        if kind == "subject.forgotten":
            who = f"user:gone-{self._chance.randrange(1_000)}"
            return Event(self._document(kind, who, "user:local", subject=who))
        by = "user:local" if kind == "model.used" else self._chance.choice(OWNERS)
        return Event(self._document(kind, self._new(FACTS[kind].entity()), by))


def _follows(fact: type[Fact]) -> bool:
    return bool(getattr(fact, "follows", ()))
