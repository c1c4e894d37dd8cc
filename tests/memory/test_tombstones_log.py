"""What leaves a tombstone follows from the log alone, however it is cut; nobody who was forgotten leaves a word."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.contract.memory import Memory
from kledger.contract.scopes import Caller
from ledger.event import Fact, Lineage, NewEvent, StoredEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import (
    KnowledgeEvolved,
    KnowledgeExpired,
    KnowledgeMerged,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeSuperseded,
)
from ledger.events.statement import StatementDropped, StatementHeld, StatementReleased
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import DataKey, MemoryVault
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.live.persons import left_in_clear
from projections.similar.tombstones import Stated, said_again
from projections.views.tombstones.ask import Wanted, held
from tests.examples import tries
from tests.projections.histories import new_view, rows, saved, state, stored, view_of
from tests.sealed_events import sealed_event

ANN, SCRIBE, NODE = "user:ann", "agent:scribe", "user:local"
ITEMS = ("one", "two")
SAID = "The nightly build runs on Fridays at noon."
CAUSES = ("asked", "contradicts", "made-up")


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)


def tombstones(*events: NewEvent) -> list[tuple[str, str, int]]:
    bench = view_of(stored(events))
    assert rows(bench.con, "SELECT position, code, reason FROM refused_events") == []
    return rows(bench.con, "SELECT item_id, cause, stated FROM tombstones ORDER BY position")


def about(fact: Fact, actor: str = ANN, item: str = "k1", caused: str | None = None) -> NewEvent:
    return NewEvent(fact, item, actor, lineage=Lineage(causation_id=caused))


def kept(owner: str = ANN, **more: Any) -> NewEvent:
    return saved("k1", owner, **{"content": SAID, "scopes": [owner], **more})


GONE = KnowledgeRetired(reason="it is gone")
SHORT = Memory(layer="short", kind="mood", lifetime=1)


def test_a_retirement_with_a_reason_and_a_correction_leave_one_each() -> None:
    assert tombstones(kept(), about(KnowledgeRevised(content="another")), about(GONE)) == [
        ("k1", "corrected", 1),
        ("k1", "retired", 2),
    ]


@pytest.mark.parametrize(
    "events",
    [
        [kept(), about(KnowledgeRetired())],
        [kept(), about(KnowledgeRetired(reason=""))],
        [kept(SCRIBE), about(GONE, SCRIBE)],
        [kept(SCRIBE), about(KnowledgeRevised(content="another"), SCRIBE)],
        [kept(), about(KnowledgeRevised(task="another"))],
        [kept(), about(KnowledgeRevised(content=SAID, tags={"a": 1}))],
        [kept(), about(GONE), about(KnowledgeRestored())],
        [kept(memory=SHORT), about(KnowledgeRetired(reason="expired"))],
        [kept(), about(KnowledgeMerged(into="other", slim="s"))],
        [kept(), about(KnowledgeSuperseded(by="other"))],
        [kept(), about(KnowledgeEvolved(evolution="e", base_version=1, content="by a model"))],
    ],
    ids=[
        "no reason", "an empty reason", "an agent", "an agent's revision", "the same content", "other tags",
        "restored", "cleaned", "merged", "superseded", "by a model",
    ],
)  # fmt: skip
def test_nothing_else_does(events: list[NewEvent]) -> None:
    assert tombstones(*events) == []


@pytest.mark.parametrize("kind", ["extraction", "conflict"])
def test_a_revision_by_an_extraction_or_a_conflict_is_no_correction(kind: str) -> None:
    begun = NewEvent(_requested() if kind == "extraction" else _contradicts(), "p-1", ANN, id="asked")
    revised = about(KnowledgeRevised(content="another"), caused="asked")
    assert tombstones(kept(), begun, revised) == []
    late = [kept(), revised, begun]
    assert tombstones(*late) == [("k1", "corrected", 1)], "what comes after it caused nothing"


def _requested() -> ExtractionRequested:
    return ExtractionRequested(kind="statement", messages=[{"id": "m"}], owner=ANN, scopes=[ANN])


def _contradicts() -> ConflictRecorded:
    return ConflictRecorded(first="k1", first_version=1, second="k2", second_version=1, reason="r")


_held = StatementHeld.of([kept().fact], "k9", "one", 3)
_facts: st.SearchStrategy[Fact] = st.one_of(
    st.builds(KnowledgeRetired, reason=st.sampled_from([None, "", "expired", "it's gone"])),
    st.builds(KnowledgeRetired, reason=st.just("gone")),
    st.builds(KnowledgeRestored),
    st.builds(KnowledgeRevised, content=st.sampled_from(["a", "b"]), tags=st.none() | st.just({"t": 1})),
    st.builds(KnowledgeRevised, tags=st.just({"t": 2})),
    st.builds(KnowledgeSuperseded, by=st.sampled_from(ITEMS)),
    st.builds(KnowledgeExpired, after=st.just(1)),
)


@st.composite
def _histories(draw: st.DrawFn) -> list[StoredEvent]:
    events = [
        saved(item, owner, content="a", scopes=[owner], memory=draw(st.none() | st.just(SHORT)))
        for item, owner in zip(ITEMS, (ANN, draw(st.sampled_from([ANN, SCRIBE]))), strict=True)
    ]
    for number in range(draw(st.integers(1, 14))):
        kind = draw(st.integers(0, 6))
        actor = draw(st.sampled_from([ANN, ANN, SCRIBE, NODE]))
        if kind == 0:
            first = draw(st.sampled_from([_requested(), _contradicts()]))
            events.append(NewEvent(first, f"p-{number}", ANN, id=draw(st.sampled_from(CAUSES))))
        elif kind == 1:
            fact = draw(st.sampled_from([_held, StatementReleased(by=ANN, item_id="one"),
                                         StatementDropped(by=ANN, item_id="one")]))  # fmt: skip
            events.append(NewEvent(fact, "held-1", actor))
        else:
            caused = draw(st.none() | st.sampled_from(CAUSES))
            events.append(about(draw(_facts), actor, draw(st.sampled_from(ITEMS)), caused))
    return stored(events)


@settings(max_examples=tries(60), deadline=None)
@given(log=_histories(), split=st.lists(st.integers(0, 20), max_size=5))
def test_tombstones_and_held_statements_follow_from_the_log_however_it_is_cut(
    log: list[StoredEvent], split: list[int]
) -> None:
    batch.SMALL = 256
    few = state(view_of(log, split))
    assert state(view_of(log)) == few
    batch.SMALL = 0
    assert state(view_of(log, split)) == few
    assert state(view_of(log)) == few


def _log(vault: MemoryVault, *events: NewEvent) -> list[StoredEvent]:
    held_key = vault.held([ANN])[ANN]
    assert isinstance(held_key, DataKey)
    return stored([sealed_event(event, [held_key]) for event in events])


def _folded(vault: MemoryVault, log: list[StoredEvent]) -> duckdb.DuckDBPyConnection:
    bench = new_view(Keyring(vault.held))
    fold_batch(bench, log)
    assert rows(bench.con, "SELECT code, reason FROM refused_events") == []
    return bench.con


@pytest.mark.parametrize("small", [0, 256], ids=["many", "few"])
async def test_of_a_forgotten_person_nothing_is_held_and_no_word_is_kept(small: int) -> None:
    batch.SMALL = small
    vault = MemoryVault()
    await vault.obtain(ANN)
    fact = kept().fact
    assert isinstance(fact, KnowledgeSaved)
    again = StatementHeld.of([fact], "k2", "k1", 2)
    log = _log(vault, kept(), about(GONE), NewEvent(again, "held-1", ANN))
    operator, stated = Caller(), {0: Stated("t", SAID, ANN, (ANN,))}
    before = _folded(vault, log)
    assert said_again(before, "default", operator, stated)[0].standing == "held"
    (shown,), _ = held(before, "default", operator, [], Wanted())
    assert shown["content"] == SAID
    await vault.destroy(ANN, by=NODE, at="2026-03-05T12:00:00Z", receipt="r")
    after = _folded(vault, log)
    assert said_again(after, "default", operator, stated) == {}
    (shown,), _ = held(after, "default", operator, [], Wanted())
    assert {shown[name] for name in ("content", "task", "tags", "reason", "knowledge_id")} == {None}
    words = [str(row) for name in ("events", "processes", "tombstones", "knowledge_versions")
             for row in rows(after, f"SELECT * FROM {name}")]  # fmt: skip
    assert not [row for row in words if "nightly" in row]


def test_a_held_statement_that_was_published_in_clear_is_found_when_its_person_is_forgotten() -> None:
    con = view_of(stored([NewEvent(_held, "held-1", SCRIBE), NewEvent(_held, "held-2", ANN)])).con
    assert left_in_clear(con, ANN) == [1, 2], "one is of ann, the other for ann"


_SUBJECTS = ("The nightly build", "The weekly report", "数据库每天", "The blue gate of the yard")
_SAYS = (" runs on Fridays at noon.", " was moved to the second floor.", "凌晨两点备份全部文件。")
_texts = st.builds(lambda one, other: one + other, st.sampled_from(_SUBJECTS), st.sampled_from(_SAYS))
_BOB, _TEAM = "user:bob", "team:red"
_mine = st.sampled_from([(ANN, (ANN,)), (ANN, (_TEAM,)), ("user:carl", (_TEAM,)), (ANN, ("public",))])
_hidden = st.sampled_from([(_BOB, (_BOB,)), (_BOB, ("team:blue",)), ("user:carl", ("user:carl",))])


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[list[NewEvent], list[NewEvent]]:
    """Two histories of retired items, the second with some among them that ann does not read."""
    plain: list[NewEvent] = []
    other: list[NewEvent] = []
    for number in range(draw(st.integers(0, 8))):
        is_hidden = draw(st.booleans())
        owner, scopes = draw(_hidden if is_hidden else _mine)
        item = saved(f"k{number}", owner, content=draw(_texts), scopes=list(scopes))
        both = [item, NewEvent(GONE, f"k{number}", owner)]
        other += both
        plain += [] if is_hidden else both
    return plain, other


@settings(max_examples=tries(60), deadline=None)
@given(worlds=_worlds(), said=st.lists(st.tuples(_texts, _mine), min_size=1, max_size=6))
def test_what_is_hidden_from_a_caller_changes_nothing_of_what_is_held_for_them(
    worlds: tuple[list[NewEvent], list[NewEvent]], said: list[tuple[str, tuple[str, tuple[str, ...]]]]
) -> None:
    caller = Caller(user="ann", team="red")
    stated = {n: Stated("a task", text, owner, scopes) for n, (text, (owner, scopes)) in enumerate(said)}
    found = []
    for world in worlds:
        con = view_of(stored(world)).con if world else new_view().con
        again = said_again(con, "default", caller, stated)
        found.append({key: each.item_id for key, each in again.items()})
        one_by_one = {key: said_again(con, "default", caller, {key: each}) for key, each in stated.items()}
        alone = {key: each[key].item_id for key, each in one_by_one.items() if each}
        assert alone == found[-1], "what else is asked changes no answer"
    assert found[0] == found[1]
