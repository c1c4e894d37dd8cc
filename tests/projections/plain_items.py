"""What becomes of items, told a second time: the rules as their pages tell them, one event after the other.

None of the product's rules is asked, so where the two differ, one of them is wrong. Left out is what a clock decides:
that a short memory is promoted or expired (tests/memory/test_lives.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kledger.contract.scopes import PUBLIC, Caller, type_of
from ledger.event import NewEvent
from ledger.events.knowledge import (
    ItemFact,
    KnowledgeAbsorbed,
    KnowledgeApproved,
    KnowledgeConfirmed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRated,
    KnowledgeRejected,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    KnowledgeSuperseded,
    KnowledgeUnmerged,
)
from ledger.events.project import ProjectMemberAssigned

PROPOSED_BY = {"adr": {"architect"}, "known_issue": {"tester"}}
"""Who may propose a shared kind, of those that have a role at all; a coordinator may in any case."""
MAKES = {
    KnowledgeRetired: ("retired", {"active", "expired", "proposed", "rejected", "superseded"}),
    KnowledgeRestored: ("active", {"retired", "expired", "superseded"}),
    KnowledgeMerged: ("merged", {"active"}),
    KnowledgeUnmerged: ("active", {"merged"}),
    KnowledgeApproved: ("active", {"proposed"}),
    KnowledgeRejected: ("rejected", {"proposed"}),
    KnowledgeSuperseded: ("superseded", {"active", "proposed"}),
    KnowledgeEvolved: (None, {"active"}),
    KnowledgeAbsorbed: (None, {"active"}),
}
"""The status that an event makes, and those in which an item takes it; every other event is taken in any."""
STATED = (KnowledgeRevised, KnowledgeShared, KnowledgeEvolved, KnowledgeReverted, KnowledgeAbsorbed)
"""Events that state anew what an item says, or who reads it."""
JUDGING = (KnowledgeRated, KnowledgeConfirmed, KnowledgeScored)
SAID = (KnowledgeRevised, KnowledgeReverted, KnowledgeEvolved, KnowledgeAbsorbed, KnowledgeScored)


@dataclass(frozen=True)
class PlainItem:
    """An item as it is after an event."""

    owner: str
    scopes: tuple[str, ...]
    kind: str | None
    task: str
    content: str
    score: int
    helpful: int
    harmful: int
    created: int
    position: int
    status: str = "active"
    version: int = 1
    acl: frozenset[str] = frozenset()
    writers: frozenset[str] = frozenset()

    @property
    def readers(self) -> set[str]:
        return {*self.scopes, *self.acl, self.owner}

    @property
    def approved_in(self) -> list[str]:
        """The projects whose coordinators say whether it holds."""
        return [each for each in self.readers if type_of(each) == "project"] if self.kind in PROPOSED_BY else []

    def seen_by(self, caller: Caller) -> bool:
        return bool({*caller.reading_as(), PUBLIC} & self.readers)


@dataclass
class PlainItems:
    """All items of one log, and who has which role in a project. `told` takes the events in the order of the log."""

    items: dict[str, PlainItem] = field(default_factory=dict)
    past: list[dict[str, PlainItem]] = field(default_factory=lambda: [{}])
    """The items after each event, before the first one at 0."""
    _roles: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    _ids: set[tuple[str, str]] = field(default_factory=set)

    def told(self, event: NewEvent) -> str | None:
        """The code with which this event is refused; None where it counts."""
        refused = "duplicate_event" if (event.actor, event.id) in self._ids else self._judged(event)
        if refused is None:
            self._ids.add((event.actor, event.id))
        self.past.append(dict(self.items))
        return refused

    def _judged(self, event: NewEvent) -> str | None:
        fact, actor, position = event.fact, event.actor, len(self.past)
        if isinstance(fact, ProjectMemberAssigned):
            project = f"project:{event.entity_id}"
            if actor != "user:local" and "coordinator" not in self._roles_of(project, actor):
                return "not_owner"
            self._roles[project, fact.member] = set(fact.roles)
            return None
        assert isinstance(fact, ItemFact)
        item = self.items.get(event.entity_id)
        if isinstance(fact, KnowledgeSaved):
            return "knowledge_exists" if item is not None else self._saved(event.entity_id, fact, actor, position)
        if item is None:
            return "unknown_knowledge"
        if not (may_judge(item, fact, actor) if isinstance(fact, JUDGING) else self._may_change(item, fact, actor)):
            return "not_reader" if isinstance(fact, JUDGING) else "not_owner"
        _, taken_in = MAKES.get(type(fact), (None, {item.status}))
        if item.status not in taken_in:
            return "illegal_state"
        if getattr(fact, fact.builds_on, None) not in (None, item.version):
            return "version_conflict"
        self.items[event.entity_id] = self._after(item, fact, actor, position)
        return None

    def _saved(self, item_id: str, fact: KnowledgeSaved, actor: str, position: int) -> str | None:
        counts = (fact.score, fact.helpful, fact.harmful, position, position)
        kind = None if fact.memory is None else fact.memory.kind
        item = PlainItem(fact.owner, tuple(fact.scopes), kind, fact.task, fact.content, *counts)
        proposing = {"coordinator", *PROPOSED_BY.get(kind or "", ())}
        roles = [self._roles_of(each, actor) for each in item.approved_in]
        if fact.owner != actor or any(has and not has & proposing for has in roles):
            return "not_owner"
        waits = bool(item.approved_in) and not self.coordinates(item, actor)
        self.items[item_id] = replace(item, status="proposed" if waits else "active")
        return None

    def _roles_of(self, project: str, member: str) -> set[str]:
        return self._roles.get((project, member), set())

    def coordinates(self, item: PlainItem, actor: str) -> bool:
        """Whether the actor says whether this holds: a coordinator of each project that has to."""
        projects = item.approved_in
        return bool(projects) and all("coordinator" in self._roles_of(each, actor) for each in projects)

    def _may_change(self, item: PlainItem, fact: ItemFact, actor: str) -> bool:
        if isinstance(fact, KnowledgeApproved | KnowledgeRejected):
            return self.coordinates(item, actor)
        if actor == item.owner:
            return True
        if getattr(fact, "owner", None) is not None or getattr(fact, "scopes", None) is not None:
            return False  # for its owner alone to say
        if isinstance(fact, KnowledgeRevised | KnowledgeEvolved) and actor in item.writers:
            return True
        theirs = (KnowledgeRevised, KnowledgeEvolved, KnowledgeRetired, KnowledgeRestored, KnowledgeSuperseded)
        return isinstance(fact, theirs) and self.coordinates(item, actor)

    def _after(self, item: PlainItem, fact: ItemFact, actor: str, position: int) -> PlainItem:
        item = replace(item, position=position)
        match fact:
            case KnowledgeRated():
                helpful = fact.verdict == "helpful"
                return replace(item, helpful=item.helpful + helpful, harmful=item.harmful + (not helpful))
            case KnowledgeConfirmed():
                return item
            case KnowledgeShared():
                item = replace(item, acl=frozenset(fact.readers()), writers=frozenset(fact.writers()))
        before = item.status
        made, _ = MAKES.get(type(fact), (None, None))
        item = replace(item, version=item.version + 1, status=made or before)
        if isinstance(fact, SAID):
            said = {name: getattr(fact, name, None) for name in ("task", "content", "score", "owner", "scopes")}
            new = {name: value for name, value in said.items() if value is not None}
            item = replace(item, **new | ({"scopes": tuple(new["scopes"])} if "scopes" in new else {}))
        stated = isinstance(fact, STATED) and before in ("active", "proposed", "rejected")
        if not stated and not isinstance(fact, KnowledgeRestored | KnowledgeUnmerged):
            return item
        # Of what a project shares its coordinator's own words hold; what others said waits, also after it is restored.
        holds = stated and before == "active" and self.coordinates(item, actor)
        return replace(item, status="proposed" if item.approved_in and not holds else "active")


def may_judge(item: PlainItem, fact: ItemFact, actor: str) -> bool:
    """Whether the actor may say that an item helped, harmed, is true or deserves a score: whoever reads it may."""
    if {actor, PUBLIC} & item.readers:
        return True
    groups = {each for each in item.readers if type_of(each) not in ("user", "agent")}
    through = getattr(fact, "through", None)
    return bool(groups) if through is None else through in groups
