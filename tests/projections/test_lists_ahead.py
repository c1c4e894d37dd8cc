"""A list that comes before the fold of what was just saved is the list that comes after it, or it waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from kledger.contract.memory import Memory
from kledger.contract.scopes import Caller
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeShared,
)
from ledger.events.recall import RecallServed, ServedItem
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, new_secret
from ledger.store.parked import NONE_PARKED
from projections.engine import batch
from projections.engine.ahead.between import Ahead
from projections.engine.ahead.made_rows import MOST_MADE, MadeRows
from projections.engine.ahead.new_in_list import NewItems, may_merge, page_with
from projections.engine.batch import fold_batch
from projections.fold_kit.identities import Identities
from projections.fold_kit.page import Page, Window
from projections.fold_kit.workbench import Workbench
from projections.views.knowledge.listing import Wanted, items
from tests.examples import law as law_of
from tests.projections.histories import OWNERS, START_NS, histories, new_view, replace_position, saved, stored
from tests.sealed_events import sealed_event

ORG = "default"
NOW = datetime.fromtimestamp(START_NS / 1e9, UTC) + timedelta(seconds=1)
LATER = NOW + timedelta(days=3650)
EVERYBODY = Caller(reads_all=True)
READERS = (EVERYBODY, Caller(), Caller(user="王"), Caller(agent="a"), Caller(org="x y"), Caller(team="t"))
law = law_of(60)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)


def followed(bench: Workbench, log: Sequence[StoredEvent]) -> Workbench:
    """A view that has the log, and its ids in mind."""
    bench.identities = Identities()
    if log:
        fold_batch(bench, list(log))
    bench.identities.follow(bench.con, bench.position())
    return bench


def between(bench: Workbench, come: Sequence[StoredEvent], at: int) -> NewItems | None:
    """What a list has beside a view that was at a position when these events arrived; None where it waits."""
    ahead = Ahead()
    ahead.begin(at)
    ahead.arrived(come, at, bench.identities, NONE_PARKED)
    saves = ahead.saves(ORG, ahead.upto, at)
    rows = None if saves is None else MadeRows().rows_of(bench.con, bench.keyring, saves.events, at)
    return None if saves is None or rows is None else NewItems(rows, at, ahead.upto, saves.recalled)


def ahead_of(bench: Workbench, new: NewItems, caller: Caller, wanted: Wanted, window: Window, sort: Any) -> Page | None:
    found = page_with(bench.con, ORG, caller, wanted, window, LATER, sort, new)
    return None if found is None else found[0]


def in_view(bench: Workbench, caller: Caller, wanted: Wanted, window: Window, sort: Any) -> Page:
    return items(bench.con, ORG, caller, wanted, window, None, LATER, sort)


def at(position: int) -> datetime:
    return datetime.fromtimestamp(START_NS // 1_000_000_000, UTC) + timedelta(milliseconds=position)


_plain = st.builds(
    saved,
    owner=st.sampled_from(OWNERS),
    scopes=st.lists(st.sampled_from([*OWNERS, "public", "team:t"]), min_size=1, max_size=3),
    types=st.lists(st.sampled_from(["tool", "plan"]), min_size=1, max_size=2),
    tags=st.sampled_from([{}, {"a": ["b", 1]}, {"b": "灯"}]),
    score=st.integers(1, 5),
)


def _wanted(given: dict[str, Any]) -> Wanted:
    return Wanted(**given)


_filters: st.SearchStrategy[Wanted] = st.fixed_dictionaries(
    {},
    optional={
        "types": st.sampled_from([("tool",), ("plan", "none")]),
        "scopes": st.sampled_from([("public",), ("team:t", "agent:a")]),
        "visibility": st.sampled_from([("public",), ("private", "org"), ("shared",)]),
        "tags": st.just(("b",)),
        "layers": st.sampled_from([("plain",), ("document", "short"), ("plain", "shared")]),
        "owner": st.sampled_from(OWNERS),
        "created_by": st.sampled_from(OWNERS),
        "status": st.sampled_from(["active", "all", "expired", "proposed", "retired"]),
        "min_score": st.integers(2, 4),
        "max_score": st.integers(2, 4),
        "since": st.integers(0, 20).map(at),
        "until": st.integers(0, 20).map(at),
    },
).map(_wanted)
_windows = st.builds(Window, limit=st.integers(1, 4), offset=st.integers(0, 4), before=st.none() | st.integers(0, 24))
_asks = st.lists(
    st.tuples(
        st.sampled_from(READERS),
        st.just(Wanted()) | _filters,
        _windows,
        st.sampled_from(["newest", "newest", "newest", "oldest", "updated", "helpful", "confidence"]),
    ),
    min_size=4,
    max_size=8,
)


@law
@given(data=st.data(), log=histories(8), plain=st.lists(_plain, min_size=1, max_size=5), asks=_asks)
def test_a_list_ahead_is_the_list_after_the_fold(
    data: st.DataObject, log: list[StoredEvent], plain: list[NewEvent], asks: Any
) -> None:
    before, at = followed(new_view(), log), len(log)
    come = stored([NewEvent(one.fact, f"new {n}", one.actor) for n, one in enumerate(plain)])
    if data.draw(st.booleans()):
        come = [*data.draw(histories(1)), *come, *data.draw(histories(1))]
    come = [replace_position(one, at + n) for n, one in enumerate(come, 1)]
    after = new_view()
    fold_batch(after, log)
    fold_batch(after, come)
    new = between(before, come, at)
    if new is None:
        return
    event("answered")
    if upto := data.draw(st.integers(0, len(come))):  # the view has moved on meanwhile
        fold_batch(before, come[:upto])
    for caller, wanted, window, sort in asks:
        found = ahead_of(before, new, caller, wanted, window, sort)
        if found is None:
            assert new.recalled or sort != "newest" or wanted.tags
        else:
            assert found == in_view(after, caller, wanted, window, sort)


def furnished(come: Sequence[NewEvent], *there: NewEvent) -> tuple[Workbench, NewItems | None]:
    log = stored(there)
    bench = followed(new_view(), log)
    return bench, between(bench, stored(come, len(log) + 1), len(log))


def ids_of(page: Page | None) -> list[str]:
    assert page is not None
    return [item["id"] for item in page.results]


ONE_BY_ONE = [
    Wanted(types=["plan"]),
    Wanted(scopes=["team:t", "agent:a"]),
    Wanted(visibility=["private"]),
    Wanted(visibility=["public", "org"]),
    Wanted(layers=["document", "short"]),
    Wanted(layers=["plain"]),
    Wanted(owner="user:王"),
    Wanted(created_by="user:王"),
    *(Wanted(status=status) for status in ("active", "all", "expired", "proposed", "retired")),
    *(Wanted(min_score=score) for score in (2, 3, 4)),
    *(Wanted(max_score=score) for score in (2, 3, 4)),
    *(Wanted(since=at(position)) for position in (1, 3, 5)),
    *(Wanted(until=at(position)) for position in (1, 3, 5)),
]


def test_every_filter_is_among_them_or_waits_for_the_view() -> None:
    tried = {each.name for each in fields(Wanted) for one in ONE_BY_ONE if getattr(one, each.name) != each.default}
    waiting = {"tags", "concern"}
    assert tried == {each.name for each in fields(Wanted)} - waiting


@pytest.mark.parametrize("wanted", ONE_BY_ONE, ids=range(len(ONE_BY_ONE)))
def test_each_filter_takes_the_new_items_that_it_takes_once_they_are_folded(wanted: Wanted) -> None:
    there = [saved("k1", score=2), saved("k2", "user:王", scopes=["team:t"])]
    come = [
        saved("n1", "user:王", scopes=["user:王"], score=2),
        saved("n2", types=["plan", "tool"], scopes=["org:x y", "team:t"]),
        saved("n3", scopes=["team:t"], types=["plan"], score=4),
    ]
    bench, new = furnished(come, *there)
    after = new_view()
    fold_batch(after, stored([*there, *come]))
    assert new is not None
    for caller in READERS:
        found = ahead_of(bench, new, caller, wanted, Window(), "newest")
        assert found == in_view(after, caller, wanted, Window(), "newest")


def test_what_happens_in_another_tenant_is_neither_shown_nor_waited_for() -> None:
    theirs = NewEvent(saved().fact, "k1", "agent:a", "other")
    revised = NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a", "other")
    bench, new = furnished([saved("n1"), theirs, revised], saved("k2"))
    assert new is not None
    assert ids_of(ahead_of(bench, new, EVERYBODY, Wanted(), Window(), "newest")) == ["n1", "k2"]


def test_what_is_folded_by_now_holds_up_nobody() -> None:
    bench = followed(new_view(), [])
    log = stored([saved("k1"), NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a"), saved("n1")])
    ahead = Ahead()
    ahead.arrived(log, 0, bench.identities, NONE_PARKED)
    assert bench.identities is not None
    bench.identities.upto = 2  # as a fold has it before the view is there
    assert ahead.saves(ORG, 3, 1) is None
    assert ahead.saves(ORG, 3, 2) == ([log[2]], False)
    assert ahead.saves(ORG, 4, 2) is None  # 4 has not arrived
    ahead.unsure()
    assert ahead.saves(ORG, 3, 2) is None
    assert ahead.saves(ORG, 3, 3) == ([], False)


def test_what_was_shown_is_the_newest_item_that_is_in_the_list_and_no_later_one() -> None:
    bench, new = furnished([saved("n1"), saved("n2", "user:王", scopes=["user:王"])], saved("k1"))
    assert new is not None
    found = page_with(bench.con, ORG, Caller(), Wanted(), Window(), NOW, "newest", new)
    assert found is not None
    assert found[1] == 2


def test_the_pages_of_a_list_follow_one_another_from_what_is_new_to_what_is_there() -> None:
    bench, new = furnished([saved(f"n{n}") for n in range(3)], *(saved(f"k{n}") for n in range(4)))
    assert new is not None
    told, before = [], None
    for _ in range(4):
        page = ahead_of(bench, new, Caller(), Wanted(), Window(2, 0, before), "newest")
        assert page is not None
        assert page.total == 7
        told += ids_of(page)
        before = page.next
    assert told == ["n2", "n1", "n0", "k3", "k2", "k1", "k0"]
    assert before is None
    assert ids_of(ahead_of(bench, new, Caller(), Wanted(), Window(2, 2), "newest")) == ["n0", "k3"]


def test_what_the_view_has_by_now_is_in_the_list_once() -> None:
    bench, new = furnished([saved("n1"), saved("n2")], saved("k1"))
    fold_batch(bench, stored([saved("n1")], 2))
    assert new is not None
    page = ahead_of(bench, new, Caller(), Wanted(), Window(), "newest")
    assert ids_of(page) == ["n2", "n1", "k1"]
    assert page is not None
    assert page.total == 3


def test_a_file_that_is_behind_the_one_that_was_looked_at_waits() -> None:
    bench, new = furnished([saved("n1")], saved("k1"))
    assert new is not None
    assert ahead_of(bench, NewItems(new.rows, 2, 3), Caller(), Wanted(), Window(), "newest") is None


def test_who_sees_nothing_of_what_is_new_has_the_list_of_the_view_in_any_order() -> None:
    bench, new = furnished([saved("n1", "user:王", scopes=["user:王"])], saved("k1"), saved("k2"))
    assert new is not None
    found = page_with(bench.con, ORG, Caller(team="t"), Wanted(tags=("x",)), Window(), NOW, "updated", new)
    assert found == (Page([], 0, None), 0)
    assert ids_of(ahead_of(bench, new, Caller(team="t"), Wanted(), Window(), "oldest")) == ["k1", "k2"]
    owner = Caller(user="王")
    assert page_with(bench.con, ORG, owner, Wanted(), Window(), NOW, "oldest", new) is None
    assert page_with(bench.con, ORG, owner, Wanted(tags=("x",)), Window(), NOW, "newest", new) is None
    shown = page_with(bench.con, ORG, owner, Wanted(), Window(), NOW, "newest", new)
    assert shown is not None
    assert shown[1] == 3


def test_an_operator_with_tokens_lists_what_it_sees_and_not_all_that_it_may_read() -> None:
    bench, new = furnished([saved("n1", scopes=["team:t"]), saved("n2")])
    assert new is not None
    assert ids_of(ahead_of(bench, new, Caller(), Wanted(), Window(), "newest")) == ["n2"]


@pytest.mark.parametrize(
    "later",
    [
        NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a"),
        NewEvent(KnowledgeRetired(), "k1", "agent:a"),
        NewEvent(KnowledgeRated(verdict="helpful"), "k1", "agent:a"),
        NewEvent(KnowledgeConfirmed(), "k1", "agent:a"),
        NewEvent(KnowledgeShared(acl=[]), "k1", "agent:a"),
        saved("k1", content="again"),
        saved("n2", supersedes="k1"),
        saved("n2", resource_ids=["r1"]),
        saved("n2", memory=Memory(layer="semantic")),
    ],
    ids=range(9),
)
def test_whatever_else_is_about_items_is_waited_for(later: NewEvent) -> None:
    _, new = furnished([saved("n1"), later], saved("k1"))
    assert new is None


def test_what_is_about_no_item_is_not_waited_for() -> None:
    served = NewEvent(
        RecallServed(kind="search", visible_scopes=["public"], query="q", items=[], view_position=1), "r1", "agent:a"
    )
    bench, new = furnished([served], saved("k1"))
    assert new is not None
    assert new.recalled
    assert ids_of(ahead_of(bench, new, Caller(), Wanted(), Window(), "newest")) == ["k1"]


def test_recalls_are_waited_for_where_a_short_memory_may_live_of_them() -> None:
    served = NewEvent(
        RecallServed(
            kind="search",
            visible_scopes=["public"],
            query="q",
            items=[ServedItem(id="k1", version=1, relevance=1.0)],
            view_position=1,
        ),
        "r1",
        "agent:a",
    )
    bench, new = furnished([served], saved("k1", memory=Memory(layer="short", lifetime=3600)))
    assert new is not None
    assert ahead_of(bench, new, Caller(), Wanted(), Window(), "newest") is None


def test_a_list_of_the_past_and_one_of_what_is_said_of_items_elsewhere_wait() -> None:
    assert may_merge(Wanted(tags=("a",)), None)
    assert not may_merge(Wanted(), 3)
    assert not may_merge(Wanted(concern="never_recalled"), None)


def test_rows_are_made_once_and_no_more_of_them_than_a_read_may_take() -> None:
    bench, made = new_view(), MadeRows()
    log = stored([saved(f"k{n}") for n in range(MOST_MADE + 1)])
    assert made.rows_of(bench.con, bench.keyring, log, 0) is None
    first = made.rows_of(bench.con, bench.keyring, log[:2], 0)
    again = made.rows_of(bench.con, bench.keyring, log, 0)
    assert first is not None
    assert again is not None
    assert [id(row) for row in again[:2]] == [id(row) for row in first]
    assert len(again) == MOST_MADE + 1
    assert made.rows_of(bench.con, bench.keyring, log, MOST_MADE + 1) is None  # folded ones are forgotten


def test_what_was_sealed_is_in_a_list_for_as_long_as_its_key_is_at_hand() -> None:
    key = DataKey("user:ada", new_secret())
    log = stored([sealed_event(saved("k1", content="said by Ada"), [key])])
    bench, made, keyring = new_view(), MadeRows(), Keyring()
    assert b"said by Ada" not in log[0].body
    assert made.rows_of(bench.con, keyring, log, 0) is None
    keyring.take({key.name: key})
    rows = made.rows_of(bench.con, keyring, log, 0)
    assert rows is not None
    assert rows[0]["content"] == "said by Ada"
    keyring.forget(key.name)
    assert made.rows_of(bench.con, keyring, log, 0) is None
