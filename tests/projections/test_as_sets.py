"""In a batch of many kinds what can be judged as a set is, and comes to what judging each event by itself comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.memory import Memory
from kledger.contract.projects import SHARED_KINDS
from kledger.contract.words import ProfileType
from ledger.event import NewEvent, StoredEvent
from ledger.events.goal import GoalFocused, goal_entity_id
from ledger.events.knowledge import KnowledgePromoted, KnowledgeRetired, KnowledgeSaved, KnowledgeShared
from ledger.events.profile import (
    ProfileCreated,
    ProfileDisabled,
    ProfileFact,
    ProfilePatched,
    ProfileReplaced,
    profile_id,
)
from ledger.events.recall import RecallServed, ServedItem
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.gate import Judgement, Seen, judge
from projections.fold_kit.decisions import Candidate, Rules
from projections.fold_kit.documents import is_plain
from projections.fold_kit.identities import Identities
from projections.views import as_sets
from tests.projections.histories import histories, new_view, parts, rows, saved, state, stored, view_of
from tests.projections.test_laws import law
from tests.projections.test_plain import plain_events, rating, revision, saving

OWNERS = ("agent:a", "user:u")
owners = st.sampled_from(OWNERS)
ids = st.sampled_from(["e-1", "e-2", "e-3"])


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)
    monkeypatch.setattr(gate, "LEAST", 0)


def recall(by: str, *items: str) -> NewEvent:
    served = [ServedItem(id=item, version=1, relevance=0.5) for item in items]
    fact = RecallServed(kind="search", query="q", visible_scopes=[by, "public"], items=served, view_position=1)
    return NewEvent(fact, f"recall-{'-'.join((by, *items))}", by)


def profile(
    owner: str, fact: type[ProfileFact], by: str, said: str, memory: ProfileType = "user", org: str = "default"
) -> NewEvent:
    about: dict[str, Any] = {"owner": owner, "memory_type": memory}
    if fact is ProfilePatched:
        about["patch"] = {"a": {said: [said, None]}, said: None if len(said) % 2 else {"b": 0.25}}
    elif fact is not ProfileDisabled:
        about["content"] = {"a": {"kept": 1, "small": 0.000005}, said: said}
    return NewEvent(fact(**about), profile_id(owner, memory), by, org=org)


def short(item: str, by: str) -> NewEvent:
    memory = Memory(layer="short", kind="context", importance=0.5, lifetime=3_600)
    fact = KnowledgeSaved(types=["plan"], task="t", content="c", scopes=["public"], owner=by, memory=memory)
    return NewEvent(fact, item, by)


def promoted(item: str, by: str) -> NewEvent:
    return NewEvent(KnowledgePromoted(cause="recalled"), item, by)


def focus(owner: str, by: str) -> NewEvent:
    fact = GoalFocused(goal_id="g.1", owner=owner, description="d", items=[])
    return NewEvent(fact, goal_entity_id(owner, "g.1"), by)


profiles = st.builds(
    profile,
    owners,
    st.sampled_from([ProfileCreated, ProfilePatched, ProfilePatched, ProfilePatched, ProfileReplaced, ProfileDisabled]),
    owners,
    st.sampled_from(["x", "xy", "言", "\x1b"]),
    st.sampled_from(["user", "user", "work"]),
    st.sampled_from(["default", "default", "other"]),
)
items = st.sampled_from(["k1", "k2", "k3", "s1", "s2"])
others = st.one_of(
    profiles,
    st.builds(recall, owners, items, items),
    st.builds(recall, owners, st.sampled_from(["s1", "s2"])),
    st.builds(short, st.sampled_from(["s1", "s2"]), owners),
    st.builds(promoted, st.sampled_from(["s1", "s2"]), st.sampled_from(["user:local", "user:u"])),
    st.builds(focus, owners, owners),
    st.builds(NewEvent, st.just(KnowledgeShared(acl=[])), items, owners),
    st.builds(NewEvent, st.just(KnowledgeRetired()), items, owners),
    st.builds(revision, st.sampled_from(["s1", "s2"]), st.integers(0, 9), owners),
)


@st.composite
def mixed(draw: st.DrawFn) -> list[StoredEvent]:
    """Plain events with others among them, a few of which repeat an id."""
    said: list[NewEvent] = []
    for event in [*draw(plain_events()), *draw(st.lists(others, max_size=20))]:
        repeats = draw(st.integers(0, 12)) == 0
        said.insert(draw(st.integers(0, len(said))), replace(event, id=draw(ids)) if repeats else event)
    return stored([saving("k1", "agent:a", "agent:a", 0), saving("k2", "user:u", "user:u", 1), *said])


@law
@given(log=mixed() | histories(), cuts=st.lists(st.integers(0, 40), max_size=2))
def test_a_mixed_batch_gives_the_view_that_its_events_judged_one_by_one_give(
    log: list[StoredEvent], cuts: list[int]
) -> None:
    batch.SMALL, gate.LEAST = 0, 0
    as_sets = state(view_of(log, cuts))
    gate.LEAST = 10_000
    assert as_sets == state(view_of(log, cuts))
    batch.SMALL = 256
    assert as_sets == state(view_of(log, cuts))


@st.composite
def saves(draw: st.DrawFn) -> list[StoredEvent]:
    """Saves, most of them of new items by their owners; some repeat an item or an id, or need a project's approval."""
    said: list[NewEvent] = []
    odd = st.sampled_from([*[""] * 6, "item", "owner", "shared", "id"])
    for number in range(draw(st.integers(1, 6))):
        kind, by = draw(odd), draw(owners)
        item = draw(st.sampled_from(["k1", "s1"])) if kind == "item" else f"n{number}"
        owner = draw(owners) if kind == "owner" else by
        event = saving(item, by, owner, number % 3, "project:p" if kind == "shared" else "public")
        if kind == "shared":
            memory = Memory(layer="semantic", kind=draw(st.sampled_from(SHARED_KINDS)), importance=0.5)
            event = replace(event, fact=event.fact.model_copy(update={"memory": memory}))
        said.append(replace(event, id=draw(ids)) if kind == "id" else event)
    return stored(said)


@law
@given(log=saves(), cuts=st.lists(st.integers(0, 6), max_size=3), room=st.sampled_from([2, 1 << 16]))
def test_saves_whose_ids_are_kept_in_mind_give_the_view_that_judging_them_one_by_one_gives(
    log: list[StoredEvent], cuts: list[int], room: int
) -> None:
    batch.SMALL = 256
    one_by_one = state(view_of(log, cuts))
    batch.SMALL, bench = 0, new_view()
    bench.identities = Identities(room)
    for part in parts(log, cuts):
        fold_batch(bench, part)
        bench.identities.follow(bench.con, bench.position())
    judged_together = state(bench)
    bench.identities = None  # the bench is used again
    assert judged_together == one_by_one


SHARED = saving("k3", "agent:a", "agent:a", 0, "project:p")
PROPOSED = SHARED.fact.model_copy(update={"memory": Memory(layer="semantic", kind="adr", importance=0.5)})


@pytest.mark.parametrize(
    "said",
    [
        [saved("k1"), saved("k1", content="again")],
        [saved("k1"), replace(saved("k2"), id="same"), replace(saved("k3"), id="same")],
        [saved("k1"), saving("k2", "agent:a", "user:u", 0)],
        [saved("k1"), replace(SHARED, fact=PROPOSED)],
    ],
    ids=["an item that is there", "an id that is there", "of another owner", "what a project approves"],
)
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_an_odd_save_is_judged_alike_whether_or_not_ids_are_kept_in_mind(said: list[NewEvent], cut: int) -> None:
    log = stored(said)
    asked = state(view_of(log, [cut]))
    bench = new_view()
    bench.identities = Identities()
    for part in parts(log, [cut]):
        fold_batch(bench, part)
        bench.identities.follow(bench.con, bench.position())
    bench.identities = None  # the bench is used again
    assert state(bench) == asked


def test_new_items_are_judged_without_a_question_where_the_ids_of_the_view_are_kept_in_mind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(*_: Any) -> None:
        raise AssertionError("the view was asked")

    monkeypatch.setattr(as_sets, "judged", asked)
    bench = new_view()
    bench.identities = Identities()
    counted = fold_batch(bench, stored([saved("k1"), saved("k2")]))
    bench.identities = None  # the bench is used again
    assert (counted.accepted, counted.refused) == (2, 0)


@law
@given(said=st.lists(profiles, min_size=1, max_size=16), cuts=st.lists(st.integers(0, 16), max_size=2))
def test_a_batch_about_memories_gives_the_view_that_events_folded_one_by_one_give(
    said: list[NewEvent], cuts: list[int]
) -> None:
    log = stored(said)
    batch.SMALL = 0
    as_sets = state(view_of(log, cuts))
    batch.SMALL = 256
    assert as_sets == state(view_of(log, cuts))


@pytest.mark.parametrize("value", [0.000005, -1.5e300, "\x1b", 'e-"e+\\u\n'])
def test_a_memory_is_spelled_alike_by_a_large_batch_and_by_a_small_one(value: float | str) -> None:
    about: dict[str, Any] = {"owner": "user:u", "memory_type": "user"}
    facts = (ProfileCreated(content={}, **about), ProfilePatched(patch={"a": value}, **about))
    log = stored([NewEvent(fact, profile_id("user:u", "user"), "user:u") for fact in facts])
    as_sets = state(view_of(log, []))
    batch.SMALL = 256
    assert as_sets == state(view_of(log, []))


def test_beside_what_is_odd_nothing_else_is_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looped: list[tuple[str, str]] = []

    def noted(candidates: Iterable[Candidate], rules: dict[str, Rules], seen: Seen) -> Judgement:
        candidates = list(candidates)
        looped.extend((each.type, each.entity_id) for each in candidates)
        return judge(candidates, rules, seen)

    monkeypatch.setattr(gate, "judge", noted)
    plain = [
        saved("k4"),
        saved("k1"),
        rating("k1", 1),
        revision("k1", 2),
        recall("agent:a", "k1", "k2"),
        focus("agent:a", "agent:a"),
    ]
    memories = [profile("user:u", ProfileCreated, "user:u", "x"), profile("user:u", ProfilePatched, "user:u", "y")]
    odd = [
        saved("k2"),
        NewEvent(KnowledgeShared(acl=[]), "k2", "agent:a"),
        rating("k2", 3),
        revision("k3", 4),
        short("s1", "agent:a"),
        recall("agent:a", "s1"),
        focus("agent:a", "user:u"),
        profile("agent:a", ProfilePatched, "agent:a", "x"),
    ]
    bench = new_view()
    said = [each for pair in zip(odd, [*plain, *memories], strict=True) for each in pair]
    counted = fold_batch(bench, stored(said))
    assert (counted.accepted, counted.refused) == (13, 3)
    assert sorted(looped) == sorted((each.fact.name, each.entity_id) for each in odd)
    refused = rows(bench.con, "SELECT code FROM refused_events ORDER BY code")
    assert refused == [("not_owner",), ("unknown_knowledge",), ("unknown_profile",)]
    assert rows(bench.con, "SELECT id, version, helpful FROM knowledge WHERE id IN ('k1', 'k2') ORDER BY id") == [
        ("k1", 2, 2),
        ("k2", 2, 2),
    ]


def test_an_id_that_another_kind_of_event_had_counts_once() -> None:
    first, second = replace(recall("agent:a", "k1"), id="same"), replace(rating("k1", 1), id="same")
    for log in ([saved("k1"), first, second], [saved("k1"), second, first]):
        bench = view_of(stored(log), [1])
        assert rows(bench.con, "SELECT code FROM refused_events") == [("duplicate_event",)]
        assert rows(bench.con, "SELECT type FROM events WHERE event_id = 'same'") == [(log[1].fact.name,)]


numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.dictionaries(
    st.text(max_size=4),
    st.recursive(
        st.none() | st.booleans() | numbers | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)


@law
@given(document=documents)
def test_a_plain_document_is_one_that_the_models_write_as_it_is_written(document: dict[str, object]) -> None:
    text = orjson.dumps(document).decode()
    if is_plain(text) and "\\u0000" not in text:  # which is looked for in the whole body
        fact = ProfilePatched.model_validate_json(f'{{"owner":"user:u","memory_type":"user","patch":{text}}}')
        assert text in fact.model_dump_json()


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{"people":[{"name":"王","meta":{"confidence":0.5}}],"n":12}', True),
        ('{"a":{"b":1,"b":2}}', False),
        ('{"a": [1]}', False),
        ('{"a":[1.50]}', False),
        ('{"a":[1e22]}', False),
        ('{"a":[12345678901234567]}', False),
        ('{"a":[-0]}', False),
        ('{"a":NaN}', False),
        ('{"a":["\\ud800"]}', False),
        ('{"a":' * 40 + "1" + "}" * 40, False),
        ("[1]", False),
    ],
)
def test_a_document_that_may_be_read_or_written_in_two_ways_is_not_plain(text: str, plain: bool) -> None:
    assert is_plain(text) is plain
