"""Do the views say of items what plain Python says of them? Random logs of everything that may be stated of an item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.knowledge import AclEntry, Case, Source
from kledger.contract.memory import Memory
from kledger.contract.scopes import Caller
from kledger.contract.words import ProjectRole
from ledger.event import DEFAULT_ORG, Fact, NewEvent
from ledger.events.knowledge import (
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
from projections.engine import batch, gate
from projections.fold_kit.page import Window
from projections.overview.facets import facets
from projections.views.knowledge import ask, listing
from tests.examples import law
from tests.projections.histories import rows, stored, view_of
from tests.projections.plain_items import MAKES, PlainItem, PlainItems

E = TypeVar("E")
PERSONS = ("user:a", "user:b", "agent:c", "user:local")
ENTITIES = (*PERSONS, "team:t", "project:p", "project:q")
ITEMS = ("k1", "k2", "论/文")
ROLES: tuple[ProjectRole, ...] = get_args(ProjectRole)
SHARED = ("adr", "known_issue")
ALL = listing.Wanted(status="all")
WINDOW = Window(len(ITEMS))
COLUMNS = "status, version, task, content, owner, scopes, score, helpful, harmful, created_position, position"
WEIGHTS: dict[type[Fact], int] = {
    KnowledgeSaved: 4,
    KnowledgeRevised: 7,
    KnowledgeShared: 6,
    KnowledgeRated: 3,
    KnowledgeScored: 2,
    KnowledgeConfirmed: 1,
    KnowledgeRetired: 3,
    KnowledgeRestored: 5,
    KnowledgeApproved: 5,
    KnowledgeRejected: 2,
    KnowledgeSuperseded: 2,
    KnowledgeMerged: 2,
    KnowledgeUnmerged: 3,
    KnowledgeAbsorbed: 2,
    KnowledgeEvolved: 3,
    KnowledgeReverted: 3,
    ProjectMemberAssigned: 6,
}


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)
    monkeypatch.setattr(gate, "LEAST", gate.LEAST)


def a_fact(chance: Random, kind: type[Fact], actor: str, item: PlainItem | None) -> Fact:
    """Something of this kind; what it says is a number, so that no two say the same."""

    def some(of: Sequence[E], most: int, least: int = 0) -> list[E]:
        return chance.sample(of, chance.randint(least, most))

    def acl() -> list[AclEntry]:
        return [AclEntry(entity=each, permission=chance.choice(["read", "read_write"])) for each in some(ENTITIES, 3)]

    def ours(*, seldom: bool = False) -> list[str] | None:
        return None if seldom and chance.random() < 0.7 else some((*ENTITIES, "public"), 2, 1)

    words, through = str(chance.random()), chance.choice([None, actor, "team:t", "project:p", "public"])
    version = chance.choice([1, 2, 3, *[1 if item is None else item.version] * 6])
    kinds: dict[type[Fact], Callable[[], Fact]] = {
        KnowledgeSaved: lambda: KnowledgeSaved(
            types=["tool"],
            task="t",
            content=words,
            scopes=ours() or [],
            owner=chance.choice([actor, actor, actor, *some(ENTITIES, 1)]),
            score=chance.randint(1, 5),
            helpful=chance.choice([0, 1, 10**9]),
            memory=chance.choice([None, *(Memory(layer="semantic", kind=each) for each in (None, *SHARED, *SHARED))]),
        ),
        KnowledgeRevised: lambda: KnowledgeRevised(
            content=words,
            task=chance.choice([None, "u"]),
            scopes=ours(seldom=True),
            owner=chance.choice([None] * 9 + some(ENTITIES, 3)),
            expected_version=chance.choice([None, version]),
        ),
        KnowledgeReverted: lambda: KnowledgeReverted(
            to_version=1, types=["plan"], task="r", content=words, tags={}, scopes=ours() or [], resource_ids=[],
            source=Source(), score=2,
        ),
        KnowledgeShared: lambda: KnowledgeShared(acl=acl()),
        KnowledgeRated: lambda: KnowledgeRated(verdict=chance.choice(["helpful", "harmful"]), through=through),
        KnowledgeScored: lambda: KnowledgeScored(score=chance.randint(1, 5), through=through),
        KnowledgeConfirmed: lambda: KnowledgeConfirmed(case=Case(reason=words), through=through),
        KnowledgeRetired: lambda: KnowledgeRetired(reason=chance.choice([None, words])),
        KnowledgeRestored: KnowledgeRestored,
        KnowledgeApproved: lambda: KnowledgeApproved(expected_version=version),
        KnowledgeRejected: lambda: KnowledgeRejected(expected_version=version),
        KnowledgeSuperseded: lambda: KnowledgeSuperseded(by=chance.choice(ITEMS)),
        KnowledgeMerged: lambda: KnowledgeMerged(into=chance.choice(ITEMS), slim="s"),
        KnowledgeUnmerged: lambda: KnowledgeUnmerged(slim="s"),
        KnowledgeAbsorbed: lambda: KnowledgeAbsorbed(slim="s", merged=[chance.choice(ITEMS)], task="m"),
        KnowledgeEvolved: lambda: KnowledgeEvolved(evolution="e", base_version=version, content=words),
        ProjectMemberAssigned: lambda: ProjectMemberAssigned(
            member=chance.choice(PERSONS), roles=some(ROLES[:1], 1, 1) if chance.random() < 0.7 else some(ROLES, 2)
        ),
    }  # fmt: skip
    return kinds[kind]()


def events_of(chance: Random) -> list[NewEvent]:
    """A log: most of it is stated by those who may, and some by others, once more, or under an id that is taken."""
    lead = ProjectMemberAssigned(member="agent:c", roles=["coordinator"])
    events = [NewEvent(lead, project, "user:local") for project in "pq"] if chance.random() < 0.7 else []
    told = PlainItems()
    for event in events:
        told.told(event)
    for _ in range(chance.randint(10, 80)):
        item_id, actor = chance.choice(ITEMS), chance.choice(ENTITIES)
        item = told.items.get(item_id)
        (kind,) = chance.choices(list(WEIGHTS), [_weight(kind, item) for kind in WEIGHTS])
        if kind is ProjectMemberAssigned:
            item_id, actor = chance.choice("pq"), chance.choice(["user:local", "user:local", actor])
        elif item is not None and chance.random() < 0.8:
            leads = [each for each in PERSONS if told.coordinates(item, each)]
            actor = chance.choice([item.owner, *sorted(item.writers), *leads * 4])
        event = NewEvent(a_fact(chance, kind, actor, item), item_id, actor)
        if events and chance.random() < 0.1:
            event = chance.choice([chance.choice(events), NewEvent(event.fact, item_id, actor, id=events[-1].id)])
        events.append(event)
        told.told(event)
    return events


def _weight(kind: type[Fact], item: PlainItem | None) -> float:
    """How often it is stated: seldom of an item that does not take it."""
    if item is None:
        return 40 if kind is KnowledgeSaved else WEIGHTS[kind] / 4
    _, taken_in = MAKES.get(kind, (None, {item.status}))
    return WEIGHTS[kind] if item.status in taken_in and kind is not KnowledgeSaved else 0.2


def row_of(item: PlainItem) -> tuple[object, ...]:
    stated = (item.status, item.version, item.task, item.content, item.owner, list(item.scopes), item.score)
    return *stated, item.helpful, item.harmful, item.created, item.position


@law(36, dear=True)
@given(seed=st.integers(0, 2**32))
def test_what_counts_and_what_is_seen_of_items_is_what_plain_python_says(seed: int) -> None:
    chance = Random(seed)
    events, plain = events_of(chance), PlainItems()
    refused = {at: code for at, event in enumerate(events, 1) if (code := plain.told(event)) is not None}
    batch.SMALL, gate.LEAST = chance.choice([(0, 0), (0, 1_000), (256, 1_000)])
    con = view_of(stored(events), [chance.randint(0, len(events)) for _ in range(chance.randint(0, 4))]).con

    assert dict(rows(con, "SELECT position, code FROM refused_events")) == refused
    assert {at for (at,) in rows(con, "SELECT position FROM events")} == set(range(1, len(events) + 1)) - set(refused)
    position = chance.randint(0, len(events))
    for source, items in (("knowledge", plain.items), (f"knowledge_as_of({position})", plain.past[position])):
        found = {item_id: tuple(row) for item_id, *row in rows(con, f"SELECT id, {COLUMNS} FROM {source}")}
        assert found == {item_id: row_of(item) for item_id, item in items.items()}
    caller = Caller(further=(chance.choice(ENTITIES),))
    seen = {item_id: item for item_id, item in plain.items.items() if item.seen_by(caller)}
    then = {k: item for k, item in plain.past[position].items() if k in seen and item.seen_by(caller)}
    for as_of, expected in ((None, seen), (position, then)):
        page = listing.items(con, DEFAULT_ORG, caller, ALL, WINDOW, as_of).results
        shown = {item["id"]: (item["status"], item["version"], item["content"]) for item in page}
        assert shown == {name: (item.status, item.version, item.content) for name, item in expected.items()}
        told = facets(con, DEFAULT_ORG, caller, ALL, as_of)
        assert told["total"] == len(expected)
        counted = {each["value"]: each["count"] for each in told["statuses"]}
        states = [item.status for item in expected.values()]
        assert counted == {status: states.count(status) for status in states}
    for item_id, item in seen.items():
        versions = {each["version"] for each in ask.versions(con, DEFAULT_ORG, caller, item_id)}
        states_of = {past[item_id] for past in plain.past if item_id in past}
        assert versions == {each.version for each in states_of if each.seen_by(caller)}
        assert item.version == max(versions)
