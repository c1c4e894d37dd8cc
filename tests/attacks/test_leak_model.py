"""Is what may be seen what ten lines say? Random scopes, ACLs, owners and callers against a reference model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.contract.errors import Forbidden
from kledger.contract.knowledge import AclEntry
from kledger.contract.scopes import OPERATOR, PUBLIC, Caller
from ledger.event import DEFAULT_ORG, Fact, NewEvent
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved, KnowledgeShared
from producers.access.principal import Principal
from projections.fold_kit.page import Window
from projections.fold_kit.workbench import Workbench
from projections.search.items import items_then
from projections.search.ranking import reading_scope
from projections.vectors.changes import changes_after
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Point, SearchOptions
from projections.vectors.tokens import document_terms, query_terms
from projections.vectors.wire import Store
from projections.views.knowledge import ask, listing
from projections.views.knowledge.why import why_visible
from projections.views.lineage.ask import links
from tests.examples import law, tries
from tests.projections.histories import stored, view_of

ENTITIES = ("user:a", "user:b", "agent:a", "team:t", "org:o", "department:f", OPERATOR)
ITEMS = ("k1", "k2", "论/文")
DIMENSIONS = 4
ONES = np.ones(DIMENSIONS, np.float32)
TERMS, WORDS = document_terms("words", ""), query_terms("words")


@dataclass(frozen=True)
class Item:
    """One item of the model, as it is at one position."""

    scopes: frozenset[str]
    owner: str
    acl: frozenset[str] = frozenset()
    writers: frozenset[str] = frozenset()

    def seen(self, caller: Caller) -> bool:
        return bool({*caller.reading_as(), PUBLIC} & (self.scopes | self.acl | {self.owner}))

    def read(self, caller: Caller) -> bool:
        return self.seen(caller) or not caller.entities()

    def after(self, fact: Fact, actor: str) -> Item:
        match fact:
            case KnowledgeShared() if actor == self.owner:
                return replace(self, acl=frozenset(fact.readers()), writers=frozenset(fact.writers()))
            case KnowledgeRevised() if actor == self.owner:
                return replace(self, scopes=frozenset(fact.scopes or self.scopes), owner=fact.owner or self.owner)
        return self  # somebody else's word: a writer may change what it says, and nothing of this


@dataclass(frozen=True)
class World:
    """A log about a few items, the model after each of its events (the first is before any), and who asks."""

    events: list[NewEvent]
    states: list[dict[str, Item]]
    callers: list[Caller]


def world(seed: int) -> World:
    """Drawn evenly, which hypothesis alone does not: most of its worlds are about one entity and no ACL."""
    chance = Random(seed)

    def some(most: int, least: int = 0, of: Sequence[str] = ENTITIES) -> list[str]:
        return chance.sample(of, chance.randint(least, most))

    events: list[NewEvent] = []
    states: list[dict[str, Item]] = [{}]

    def said(fact: Fact, item_id: str, actor: str, item: Item) -> None:
        events.append(NewEvent(fact, item_id, actor))
        states.append({**states[-1], item_id: item})

    for item_id in ITEMS:
        scopes, owner = some(2, 1, (*ENTITIES, PUBLIC)), chance.choice(ENTITIES)
        saved = KnowledgeSaved(types=["tool"], task="t", content="words", scopes=scopes, owner=owner)
        said(saved, item_id, owner, Item(frozenset(scopes), owner))
    for _ in range(chance.randint(1, 7)):
        item_id = chance.choice(ITEMS)
        item = states[-1][item_id]
        acl = [AclEntry(entity=one, permission=chance.choice(["read", "read_write"])) for one in some(3)]
        revised = KnowledgeRevised(
            scopes=chance.choice([None, some(2, 1)]), owner=chance.choice([None, *some(1)]), content="other words"
        )
        fact: Fact = chance.choice([KnowledgeShared(acl=acl), KnowledgeShared(acl=acl), revised])
        actor = chance.choice([item.owner, item.owner, *sorted(item.writers), *some(1)])
        said(fact, item_id, actor, item.after(fact, actor))
    return World(events, states, [Caller(further=tuple(some(2, 1))), Caller(further=tuple(some(2)))])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> EdgeStore:
    return EdgeStore(Path(tmp_path_factory.mktemp("leaks")), "model", DIMENSIONS)


def fill(store: EdgeStore, bench: Workbench) -> None:
    """The store as the feed fills it."""
    store.erase(ITEMS)
    for change in changes_after(bench.con, DEFAULT_ORG, 0, 1_000)[0]:
        if isinstance(change, Store):
            store.upsert([_point(change)])
        else:
            store.close_version(change.item_id, change.version, change.valid_to)


def _point(said: Store) -> Point:
    about = (said.item_id, said.version, said.position, said.scopes, said.types, said.owner)
    return Point(*about, dense=ONES, sparse=TERMS, valid_from=said.valid_from, valid_to=said.valid_to)


@law(25)
@given(drawn=st.integers(0, 2**32).map(world))
def test_views_and_vectors_show_what_the_model_says(store: EdgeStore, drawn: World) -> None:
    events, states = drawn.events, drawn.states
    bench, now = view_of(stored(events)), states[-1]
    fill(store, bench)
    con, ids = bench.con, sorted(now)
    for caller in drawn.callers:
        seen = {item_id for item_id, item in now.items() if item.seen(caller)}
        read = {item_id for item_id, item in now.items() if item.read(caller)}
        visible = caller.visible_scopes()
        assert {
            item["id"] for item in listing.items(con, DEFAULT_ORG, caller, listing.Wanted(), Window(9)).results
        } == seen
        assert ask.readable_ids(con, DEFAULT_ORG, caller, ids) == seen
        known = ask.standings(con, DEFAULT_ORG, caller, ids)
        assert {item_id: known[item_id].visible for item_id in known} == {one: one in seen for one in read}
        assert {each.item_id for each in items_then(con, DEFAULT_ORG, visible, [], [], None, 9).items} == seen
        found = store.search(SearchOptions(visible, limit=9), dense=ONES, sparse=WORDS)
        assert {each.item_id for each in found} == seen
        for item_id in ids:
            shown = ask.item(con, DEFAULT_ORG, caller, item_id)
            assert (shown is not None) == (item_id in read)
            assert (why_visible(con, DEFAULT_ORG, caller, item_id) is not None) == (item_id in read)
            assert (links(con, DEFAULT_ORG, caller, item_id) is not None) == (item_id in read)
            if shown is not None:
                readers = [*shown["scopes"], *(entry["entity"] for entry in shown.get("acl", ()))]
                assert (reading_scope(readers, shown["owner"], visible) is not None) == (item_id in seen)
        for position in (len(events) // 2 + 1,):
            then = states[position]
            listed = listing.items(con, DEFAULT_ORG, caller, listing.Wanted(), Window(9), position).results
            expected = {item_id for item_id, item in then.items() if item.seen(caller)}
            assert {item["id"] for item in listed} == expected & seen
            assert {one for one in then if ask.item(con, DEFAULT_ORG, caller, one, position)} == {
                item_id for item_id, item in then.items() if item.read(caller)
            } & read
            found = store.search(SearchOptions(visible, limit=9, as_of=position), dense=ONES, sparse=WORDS)
            assert {each.item_id for each in found} == expected
        for item_id in read:
            told = {version["version"] for version in ask.versions(con, DEFAULT_ORG, caller, item_id)}
            rows = con.execute("SELECT version, valid_from FROM knowledge_versions WHERE id = ?", [item_id]).fetchall()
            assert told == {version for version, at in rows if states[at][item_id].read(caller)}


_entities = st.lists(st.sampled_from(ENTITIES), max_size=4, unique=True)


@given(bound=_entities, named=_entities)
@settings(max_examples=tries(60), deadline=None)
def test_a_token_makes_nobody_what_it_is_not_bound_to(bound: list[str], named: list[str]) -> None:
    kinds: dict[str, tuple[str, ...]] = {}
    for entity in bound:
        kind, _, name = entity.partition(":")
        kinds[kind] = (*kinds.get(kind, ()), name)
    principal = Principal("t-1", "agent", kinds)
    if set(named) - set(bound):
        with pytest.raises(Forbidden):
            principal.caller({}, "/api/knowledge", named)
    elif named:
        assert principal.caller({}, "/api/knowledge", named).entities() == named
    elif any(len(names) == 1 for names in kinds.values()):
        assert {*principal.caller({}, "/api/knowledge").entities()} <= set(bound)
