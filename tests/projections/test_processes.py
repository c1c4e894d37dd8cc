"""How far is a process, who may take it further, and what does its item say of it (mission K4-K6)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kledger.contract.knowledge import Case, Source
from ledger.event import NO_LINEAGE, Fact, Lineage, NewEvent
from ledger.events.conflict import ConflictRecorded, ConflictResolved
from ledger.events.evolution import (
    EvolutionFailed,
    EvolutionProposed,
    EvolutionRejected,
    EvolutionRequested,
    EvolutionStarted,
)
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRated,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeUnmerged,
)
from ledger.events.recall import RecallServed, ServedItem
from ledger.events.slim import Similar, SlimApplied, SlimProposed, SlimReported, SlimRequested, SlimReverted
from ledger.events.statement import StatementHeld, held_id
from ledger.events.usage import Usage
from projections.engine import batch
from projections.fold_kit.workbench import Workbench
from projections.views.knowledge.evidence import confidence
from tests.projections.histories import rows, saved, state, stored, view_of

AGENT = "agent:a"
USAGE = Usage(model="m", prompt_version="1", input_tokens=10, output_tokens=5, cost_usd=0.25)


@pytest.fixture(autouse=True, params=["judged by the models", "parsed by SQL"])
def road(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of folding come to the same."""
    monkeypatch.setattr(batch, "SMALL", 256 if request.param == "judged by the models" else 0)


WAYS = pytest.mark.parametrize("cuts", [(), range(1, 20)], ids=["in one batch", "one by one"])


def folded(log: list[NewEvent], cuts: Sequence[int] = ()) -> Workbench:
    """A view of the log. SQL, which takes a fifth of a second for a batch, has three in the place of one by one."""
    return view_of(stored(log), cuts if batch.SMALL else (1, 4) if cuts else ())


def said(fact: Fact, entity_id: str, actor: str = AGENT, lineage: Lineage = NO_LINEAGE) -> NewEvent:
    return NewEvent(fact, entity_id, actor, lineage=lineage)


def asked(apply: bool = True) -> NewEvent:
    return said(EvolutionRequested(item_id="k1", base_version=1, feedback="shorter", apply=apply), "evolution-1")


def proposed() -> NewEvent:
    return said(EvolutionProposed(item_id="k1", content="short", usage=USAGE), "evolution-1")


def evolved(**changed: Any) -> NewEvent:
    return said(
        KnowledgeEvolved(**{"evolution": "evolution-1", "base_version": 1, "content": "short", **changed}), "k1"
    )


def first_version(**changed: Any) -> KnowledgeReverted:
    before: dict[str, Any] = {"types": ["tool"], "task": "a task", "content": "a content", "tags": {}, "score": 3}
    before |= {"scopes": ["public"], "resource_ids": [], "source": Source(), "to_version": 1}
    return KnowledgeReverted(**{**before, **changed})


@WAYS
def test_an_evolution_goes_from_asked_for_to_applied_to_reverted(cuts: Any) -> None:
    started = said(EvolutionStarted(call="c", model="m"), "evolution-1")
    log = [saved(), asked(), started, proposed(), evolved(), said(first_version(cause="evolution-1"), "k1")]
    for upto, status in ((2, "requested"), (3, "started"), (4, "proposed"), (5, "applied"), (6, "reverted")):
        con = folded(log[:upto], cuts).con
        assert rows(con, "SELECT status FROM evolutions") == [(status,)]
    assert rows(con, "SELECT version, change, content FROM knowledge_versions ORDER BY version") == [
        (1, "saved", "a content"),
        (2, "evolved", "short"),
        (3, "reverted", "a content"),
    ]
    assert rows(con, "SELECT item_id, feedback, content, model, outcome_position FROM evolutions") == [
        ("k1", "shorter", "short", "m", 6)
    ]
    assert rows(con, "SELECT kind, id, input_tokens, cost_usd FROM model_usage") == [
        ("evolution", "evolution-1", 10, 0.25)
    ]


def test_an_evolution_of_an_item_that_has_moved_on_does_not_count() -> None:
    con = view_of(stored([saved(), said(KnowledgeRevised(content="new"), "k1"), asked(), proposed(), evolved()])).con
    assert rows(con, "SELECT code FROM refused_events") == [("version_conflict",)]
    assert rows(con, "SELECT status FROM evolutions") == [("proposed",)]


@WAYS
def test_another_item_that_names_an_evolution_says_nothing_of_it(cuts: Any) -> None:
    other = saved("k2", "user:王")
    claims = said(KnowledgeEvolved(evolution="evolution-1", base_version=1, content="mine", task=None), "k2", "user:王")
    con = folded([saved(), other, asked(), proposed(), claims], cuts).con
    assert rows(con, "SELECT status FROM evolutions") == [("proposed",)]


@pytest.mark.parametrize(
    ("events", "code"),
    [
        ([asked(), asked()], "illegal_state"),
        ([proposed()], "unknown_process"),
        ([asked(), said(EvolutionRejected(item_id="k1"), "evolution-1")], "illegal_state"),
        ([asked(), said(EvolutionStarted(call="c", model="m"), "evolution-1", "agent:b")], "not_owner"),
        (
            [
                asked(),
                said(EvolutionFailed(item_id="k1", code="model_failed", reason="gone"), "evolution-1"),
                proposed(),
            ],
            "illegal_state",
        ),
        ([said(KnowledgeMerged(into="k2", slim="s"), "k1"), evolved(base_version=2)], "illegal_state"),
        ([said(KnowledgeUnmerged(slim="s"), "k1")], "illegal_state"),
        ([said(KnowledgeMerged(into="k2", slim="s"), "k1", "agent:b")], "not_owner"),
    ],
)
def test_a_stage_out_of_turn_or_of_somebody_else_does_not_count(events: list[NewEvent], code: str) -> None:
    con = view_of(stored([saved(), *events])).con
    assert rows(con, "SELECT code FROM refused_events") == [(code,)]


@WAYS
def test_a_slim_is_proposed_group_by_group_and_undone_whole(cuts: Any) -> None:
    group = SlimProposed(
        group=0, survivor="k1", survivor_version=1, merged=[Similar(id="k2", version=1, similarity=0.9)]
    )
    log = [
        saved(),
        saved("k2"),
        said(SlimRequested(owner=AGENT, threshold=0.8), "slim-1"),
        said(group, "slim-1"),
        said(SlimReported(candidates=2, groups=1, items=1, seconds=0.1), "slim-1"),
        said(KnowledgeMerged(into="k1", slim="slim-1"), "k2"),
        said(SlimApplied(groups=1), "slim-1"),
    ]
    con = folded(log, cuts).con
    assert rows(con, "SELECT status, groups FROM slims") == [("applied", 1)]
    assert rows(con, "SELECT survivor, group_number FROM slim_groups") == [("k1", 0)]
    assert rows(con, "SELECT status, merged_into FROM knowledge WHERE id = 'k2'") == [("merged", "k1")]
    log += [said(KnowledgeUnmerged(slim="slim-1"), "k2"), said(SlimReverted(groups=1), "slim-1")]
    con = folded(log, cuts).con
    assert rows(con, "SELECT status FROM slims") == [("reverted",)]
    assert rows(con, "SELECT status, merged_into, version FROM knowledge WHERE id = 'k2'") == [("active", None, 3)]
    assert rows(con, "SELECT status, merged_into FROM knowledge_as_of(7) WHERE id = 'k2'") == [("merged", "k1")]


def test_a_conflict_keeps_both_sides_and_the_decision() -> None:
    both = ConflictRecorded(first="k1", first_version=1, second="k2", second_version=1, reason="before or after")
    log = [saved(), saved("k2"), said(both, "conflict-1"), said(ConflictResolved(winner="k2"), "conflict-1")]
    con = view_of(stored(log)).con
    assert rows(con, "SELECT status, first, second, winner FROM conflicts") == [("resolved", "k1", "k2", "k2")]
    assert rows(con, "SELECT ref FROM lineage WHERE relation = 'contradicts' ORDER BY ref") == [("k1",), ("k2",)]


def served(trace: str, item: str = "k1") -> NewEvent:
    fact = RecallServed(
        query="q",
        visible_scopes=["public"],
        items=[ServedItem(id=item, version=1, relevance=1.0)],
        view_position=1,
    )
    return said(fact, f"recall-{trace}", lineage=Lineage(trace_id=trace))


def rated(verdict: Any, trace: str | None = None) -> NewEvent:
    return said(KnowledgeRated(verdict=verdict, case=Case(trace_id=trace)), "k1")


@WAYS
def test_a_case_earns_credit_only_when_its_trace_was_served_the_item_before(cuts: Any) -> None:
    log = [
        saved(confidence=0.5),
        rated("helpful", "t1"),  # before it was served
        served("t1"),
        served("t2", "k2"),
        rated("helpful", "t1"),
        rated("harmful", "t2"),
        rated("helpful"),
        said(KnowledgeConfirmed(), "k1"),
    ]
    con = folded(log, cuts).con
    assert rows(con, "SELECT verdict, credit FROM feedback ORDER BY position") == [
        ("helpful", "not_served"),
        ("helpful", "served"),
        ("harmful", "not_served"),
        ("helpful", "untraced"),
        ("confirmed", "untraced"),
    ]
    assert rows(con, "SELECT helpful, harmful, supporting, opposing, confidence FROM knowledge") == [
        (4, 1, 3, 0, confidence(0.5, 3, 0))
    ]
    assert rows(con, "SELECT supporting, confidence FROM knowledge_as_of(5)") == [(1, confidence(0.5, 1, 0))]


@pytest.mark.parametrize(
    ("stated", "supporting", "opposing", "sure"),
    [(0.5, 0, 0, 0.5), (0.5, 2, 0, 0.75), (0.5, 0, 1, 0.25), (0.9, 0, 4, 0.18)],
)
def test_confidence_is_what_was_stated_moved_by_the_evidence(
    stated: float, supporting: int, opposing: int, sure: float
) -> None:
    assert confidence(stated, supporting, opposing) == pytest.approx(sure)


def test_every_way_of_batching_gives_the_same_processes() -> None:
    log = [saved(), served("t1"), rated("helpful", "t1"), asked(), proposed(), evolved(), rated("harmful", "t1")]
    assert state(folded(log)) == state(folded(log, range(1, 8))) == state(view_of(stored(log), (3,)))


@WAYS
def test_an_id_that_names_an_owner_holds_nobody_elses_statement(cuts: Any) -> None:
    fact = StatementHeld(item_id="k1", retired_at=1, scopes=[AGENT], statement={})
    hers, older = held_id("default", AGENT, ["k1", "1"]), "held-0123456789abcdef0123"
    con = folded([said(fact, hers, "agent:b"), said(fact, hers), said(fact, older, "agent:b")], cuts).con
    assert rows(con, "SELECT id, owner FROM held_statements ORDER BY position") == [(hers, AGENT), (older, "agent:b")]
    assert rows(con, "SELECT position, code FROM refused_events") == [(1, "not_owner")]
