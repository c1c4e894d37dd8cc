"""A short memory lives for a while, longer where it is recalled, for good where it proves itself; the log decides."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kledger.contract.memory import PROMOTING_RECALLS, Memory
from kledger.contract.words import RecallKind
from ledger.event import Fact, Lineage, NewEvent, StoredEvent
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeExpired,
    KnowledgePromoted,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeShared,
)
from ledger.events.recall import RecallServed, ServedItem
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.views.knowledge.lives import over_among
from tests.examples import tries
from tests.projections.histories import new_view, rows, saved, state, stored, view_of

NODE, ANN, EVE = "user:local", "user:ann", "user:eve"
LIFE = 100
MOOD = Memory(layer="short", kind="mood", lifetime=LIFE)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)


def mood(**more: Any) -> NewEvent:
    return saved("k1", ANN, **{"scopes": [ANN], "memory": MOOD, **more})


def about(fact: Fact, actor: str = ANN) -> NewEvent:
    return NewEvent(fact, "k1", actor)


def recalled(
    name: str,
    actor: str = ANN,
    trace: str | None = None,
    session: str | None = None,
    visible: str = "public",
    kind: RecallKind = "search",
) -> NewEvent:
    served = [ServedItem(id=each, version=1, relevance=1.0) for each in ("k1", "k1", "other")]
    fact = RecallServed(kind=kind, query="q", visible_scopes=[visible], items=served, view_position=1)
    return NewEvent(fact, name, actor, lineage=Lineage(trace_id=trace, correlation_id=session))


def promoted(actor: str = NODE, **said: Any) -> NewEvent:
    return about(KnowledgePromoted(**{"cause": "recalled", **said}), actor)


def expired(actor: str = NODE, after: int = LIFE) -> NewEvent:
    return about(KnowledgeExpired(after=after), actor)


def at(*events: tuple[int, NewEvent]) -> list[StoredEvent]:
    """The events as the log kept them, each at its second."""
    log = stored([event for _, event in events])
    return [
        each._replace(stored_ns=1_790_000_000_000_000_000 + second * 10**9)
        for each, (second, _) in zip(log, events, strict=True)
    ]


def refused(log: list[StoredEvent]) -> list[tuple[int, str]]:
    return rows(view_of(log).con, "SELECT position, code FROM refused_events ORDER BY position")


def status(log: list[StoredEvent]) -> tuple[str, str]:
    ((layer, status),) = rows(view_of(log).con, "SELECT layer, status FROM knowledge WHERE id = 'k1'")
    return layer, status


THREE = [recalled("r1", trace="a"), recalled("r2", trace="b"), recalled("r3", trace="c")]


def test_three_recalls_for_three_traces_promote_and_one_more_promotion_is_refused() -> None:
    log = stored([mood(), *THREE, promoted(), promoted()])
    assert (status(log), refused(log)) == (("semantic", "active"), [(6, "illegal_state")])
    assert rows(view_of(log).con, "SELECT expires_at, lifetime FROM memory_items") == [(None, None)]


@pytest.mark.parametrize(
    "recalls",
    [
        [recalled("r1", trace="a"), recalled("r2", trace="a"), recalled("r3", trace="b")],
        [recalled("r1", session="s"), recalled("r2", session="s"), recalled("r3", session="s")],
        [recalled("r1"), recalled("r2")],
        [recalled(f"r{n}", EVE) for n in range(5)],
        [recalled(f"r{n}", EVE, visible="team:t") for n in range(5)],
        [recalled(f"r{n}", NODE) for n in range(5)],
    ],
    ids=["one trace", "one session", "two", "a stranger", "a stranger of a team", "the node"],
)
def test_recalls_that_are_one_or_a_strangers_promote_nothing(recalls: list[NewEvent]) -> None:
    log = stored([mood(), *recalls, promoted()])
    assert (status(log), refused(log)) == (("short", "active"), [(len(log), "illegal_state")])


def test_a_recall_through_a_group_that_reads_the_memory_counts() -> None:
    several = [recalled(f"r{n}", EVE, visible="team:t") for n in range(PROMOTING_RECALLS)]
    assert status(stored([mood(scopes=["team:t"]), *several, promoted()])) == ("semantic", "active")


@pytest.mark.parametrize("actor", [ANN, EVE, "agent:a"])
def test_that_it_was_recalled_often_enough_or_is_over_is_the_nodes_to_say(actor: str) -> None:
    log = at((0, mood()), *((1, each) for each in THREE), (2, promoted(actor)), (2 * LIFE, expired(actor)))
    assert refused(log) == [(5, "not_owner"), (6, "not_owner")]


def test_who_reads_a_memory_promotes_it_by_a_confirmation_and_who_does_not_is_refused() -> None:
    shared = mood(scopes=[ANN, "team:t"])
    assert status(stored([mood(), promoted(ANN, cause="confirmed")])) == ("semantic", "active")
    assert status(stored([shared, promoted(EVE, cause="confirmed", through="team:t")])) == ("semantic", "active")
    forged = stored([mood(), promoted(EVE, cause="confirmed"), promoted(EVE, cause="confirmed", through="team:t")])
    assert refused(forged) == [(2, "not_reader"), (3, "not_reader")]


def test_evidence_alone_promotes_nothing() -> None:
    log = stored([mood(), *[about(KnowledgeConfirmed()) for _ in range(5)], promoted()])
    assert (status(log), refused(log)) == (("short", "active"), [(7, "illegal_state")])


def test_a_memory_that_nobody_recalls_is_over_after_its_lifetime_and_not_a_moment_before() -> None:
    log = at((0, mood()), (LIFE - 1, expired()), (LIFE, expired(after=LIFE + 1)), (LIFE, expired()), (LIFE, expired()))
    assert status(log) == ("short", "expired")
    assert refused(log) == [(2, "illegal_state"), (3, "illegal_state"), (5, "illegal_state")]


@pytest.mark.parametrize(
    "renewal",
    [recalled("r1"), about(KnowledgeRevised(content="anew")), about(KnowledgeShared(acl=[]))],
    ids=["recall", "revision", "acl"],
)
def test_a_recall_or_a_change_renews_a_life(renewal: NewEvent) -> None:
    log = at((0, mood()), (LIFE - 1, renewal), (LIFE, expired()), (2 * LIFE - 1, expired()))
    assert (status(log), refused(log)) == (("short", "expired"), [(3, "illegal_state")])


def test_a_recall_after_the_end_brings_nothing_back() -> None:
    log = at((0, mood()), (LIFE, recalled("r1")), (LIFE + 1, expired()))
    assert status(log) == ("short", "expired")
    assert rows(view_of(log).con, "SELECT * FROM memory_recalls") == []


def test_what_is_over_can_be_brought_back_and_lives_once_more() -> None:
    back = about(KnowledgeRestored())
    log = at((0, mood()), (LIFE, expired()), (LIFE + 5, back), (2 * LIFE, expired()), (2 * LIFE + 5, expired()))
    assert (status(log[:3]), refused(log)) == (("short", "active"), [(4, "illegal_state")])
    again = at(
        (0, mood()), (LIFE, expired()), (LIFE, promoted(ANN, cause="confirmed")), (LIFE, about(KnowledgeRetired()))
    )
    assert (status(again), refused(again)) == (("short", "retired"), [(3, "illegal_state")])


@pytest.mark.parametrize("memory", [None, Memory(layer="semantic")])
def test_what_is_no_short_memory_is_neither_promoted_nor_over(memory: Memory | None) -> None:
    log = at(
        (0, mood(memory=memory)),
        *((1, each) for each in THREE),
        (2, promoted()),
        (2, promoted(ANN, cause="confirmed")),
        (9**9, expired()),
    )
    assert [code for _, code in refused(log)] == ["illegal_state"] * 3


_STEPS: list[NewEvent] = [
    mood(), mood(scopes=["public"]), *THREE, recalled("r4"), recalled("r5", EVE), recalled("r6", kind="page"),
    promoted(), promoted(),
    promoted(ANN, cause="confirmed"), promoted(EVE, cause="confirmed"), expired(), expired(),
    about(KnowledgeRevised(scopes=["public"])), about(KnowledgeRetired()), about(KnowledgeRestored()),
]  # fmt: skip


@st.composite
def lives(draw: st.DrawFn) -> list[StoredEvent]:
    """A memory and what may befall it, some of it twice, at seconds that may lie behind each other."""
    steps = [mood(), *draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=12))]
    events = [
        (
            draw(st.integers(0, 3)) * LIFE // 2 + LIFE * n // 4,
            NewEvent(
                e.fact,
                f"{e.entity_id}{n}" if e.fact.name == "recall.served" else e.entity_id,
                e.actor,
                lineage=e.lineage,
            ),
        )
        for n, e in enumerate(steps)
    ]
    return at(*events)


@settings(max_examples=tries(60), deadline=None)
@given(log=lives(), cuts=st.lists(st.integers(0, 20), max_size=4), again=st.integers(0, 12))
def test_any_split_and_any_path_and_a_second_delivery_decide_the_same(
    log: list[StoredEvent], cuts: list[int], again: int
) -> None:
    batch.SMALL = 256
    small = view_of(log, cuts)
    said = (
        state(small),
        rows(small.con, "FROM short_memories"),
        rows(small.con, "FROM refused_events ORDER BY position"),
    )
    batch.SMALL = 0
    large = view_of(log)
    fold_batch(large, log[again:])
    assert (
        state(large), rows(large.con, "FROM short_memories"), rows(large.con, "FROM refused_events ORDER BY position")
    ) == said  # fmt: skip
    batch.SMALL = 256
    one_by_one = new_view()
    for event in log:
        fold_batch(one_by_one, [event])
    assert state(one_by_one) == said[0]


@given(log=lives(), days=st.sampled_from([-366, 366, 4 * 366]))
@settings(max_examples=tries(20), deadline=None)
def test_a_log_that_is_kept_a_year_earlier_or_later_is_decided_alike(log: list[StoredEvent], days: int) -> None:
    """As a clock that is a year off would date it: only the times between the events count."""
    shifted = [each._replace(stored_ns=each.stored_ns + days * 86_400 * 10**9) for each in log]
    said = "SELECT position, code, reason FROM refused_events ORDER BY position"
    assert rows(view_of(shifted).con, said) == rows(view_of(log).con, said)


@given(log=lives())
@settings(max_examples=tries(40), deadline=None)
def test_what_is_over_was_over_when_the_node_said_so_whatever_befell_it_since(log: list[StoredEvent]) -> None:
    later = rows(
        view_of(log).con,
        """SELECT s.id FROM short_memories AS s JOIN knowledge_versions AS v USING (org, id)
            WHERE s.status = 'expired' AND v.change = 'expired' GROUP BY s.id, s.expires_at
            HAVING s.expires_at > arg_max(v.valid_from_time, v.valid_from)""",
    )
    assert later == []


def test_what_was_retired_has_the_end_that_it_had_and_a_revision_begins_none() -> None:
    asked = "SELECT epoch(expires_at)::BIGINT - 1790000000 FROM short_memories"
    told = (0, mood()), (9, about(KnowledgeRetired())), (20, about(KnowledgeRevised(content="anew")))
    again = (30, about(KnowledgeRestored()))
    assert [rows(view_of(at(*(*told, again)[:count])).con, asked) for count in (1, 2, 3, 4)] == [
        [(LIFE,)], [(LIFE,)], [(LIFE,)], [(30 + LIFE,)]
    ]  # fmt: skip


@given(log=lives())
@settings(max_examples=tries(20), deadline=None)
def test_the_lives_as_of_a_position_are_those_of_the_log_up_to_it(log: list[StoredEvent]) -> None:
    whole, far = view_of(log).con, datetime(2100, 1, 1, tzinfo=UTC)
    positions = range(1, len(log) + 1)
    said = [
        (rows(whole, f"FROM short_memories_at({at}) ORDER BY ALL"), over_among(whole, "default", ["k1"], far, at))
        for at in positions
    ]
    for position, (then, over) in zip(positions, said, strict=True):
        cut = view_of(log[:position]).con
        assert rows(cut, "FROM short_memories ORDER BY ALL") == then
        assert over_among(cut, "default", ["k1"], far) == over == {row[1] for row in then if row[3] == "active"}


def test_the_digest_of_a_log_without_memories_says_nothing_of_them() -> None:
    assert "memory_recalls" not in state(view_of(stored([saved("k1"), recalled("r1", "agent:a")])))
    assert "memory_recalls" in state(view_of(stored([mood(), recalled("r1")])))
