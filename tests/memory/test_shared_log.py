"""What a project shares in the log: proposals, decisions of coordinators, and who may do what, whoever publishes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from kledger.contract.knowledge import AclEntry
from kledger.contract.memory import Memory
from kledger.contract.projects import MEANT_FOR, PROPOSED_BY, SUPERSEDING_MARGIN, may_propose, meant_for
from kledger.contract.words import ProjectRole
from ledger.event import Fact, NewEvent
from ledger.events.knowledge import (
    KnowledgeApproved,
    KnowledgeMerged,
    KnowledgeRejected,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeScored,
    KnowledgeShared,
    KnowledgeSuperseded,
)
from ledger.events.project import ProjectMemberAssigned
from projections.engine import batch
from tests.examples import tries
from tests.projections.histories import rows, saved, state, stored, view_of
from tests.projections.project_facts import ANN, LEAD, NODE, shared_memory

ADR = Memory(layer="semantic", kind="adr")
P = "project:p"
COORDINATOR = NewEvent(ProjectMemberAssigned(member=LEAD, roles=["coordinator"]), "p", NODE)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)


def adr(owner: str = ANN, **more: Any) -> NewEvent:
    return saved("k1", owner, **{"scopes": [P], "memory": ADR, **more})


def about(fact: Fact, actor: str = ANN) -> NewEvent:
    return NewEvent(fact, "k1", actor)


def approved(version: int = 1, actor: str = LEAD) -> NewEvent:
    return about(KnowledgeApproved(expected_version=version), actor)


def status(*events: NewEvent) -> str:
    """The status of the item; every event has to be accepted."""
    bench = view_of(stored(events))
    assert rows(bench.con, "SELECT position, code, reason FROM refused_events") == []
    ((found,),) = rows(bench.con, "SELECT status FROM knowledge WHERE id = 'k1'")
    ((version,),) = rows(bench.con, "SELECT status FROM knowledge_versions WHERE id = 'k1' AND valid_to IS NULL")
    assert version == found
    return str(found)


def refused(*events: NewEvent) -> list[tuple[int, str]]:
    return rows(view_of(stored(events)).con, "SELECT position, code FROM refused_events ORDER BY position")


@pytest.mark.parametrize("kind", ["project_context", "adr", "convention", "known_issue", "user_preference"])
def test_a_memory_of_a_shared_kind_that_a_project_reads_is_proposed(kind: str) -> None:
    memory = Memory(layer="semantic", kind=kind)
    assert status(adr(memory=memory)) == "proposed"
    assert status(adr(memory=memory, scopes=[ANN])) == "active"
    assert status(adr(memory=memory, owner="project:p", scopes=[ANN])) == "proposed"
    assert status(adr(memory=Memory(layer="semantic", kind="habit"))) == "active"
    assert status(adr(memory=None)) == "active"


def test_a_coordinators_own_memory_is_in_force() -> None:
    assert status(COORDINATOR, adr(LEAD)) == "active"
    assert status(COORDINATOR, adr(LEAD, scopes=[P, "project:other"])) == "proposed"


def test_a_coordinator_decides_on_a_proposal_in_the_version_that_they_read() -> None:
    assert status(COORDINATOR, adr(), approved()) == "active"
    reject = about(KnowledgeRejected(expected_version=1, reason="no"), LEAD)
    assert status(COORDINATOR, adr(), reject) == "rejected"
    revised = about(KnowledgeRevised(content="another"))
    assert refused(COORDINATOR, adr(), revised, approved()) == [(4, "version_conflict")]
    assert refused(COORDINATOR, adr(), approved(), approved(2)) == [(4, "illegal_state")]
    assert refused(COORDINATOR, adr(), reject, approved(2)) == [(4, "illegal_state")]


@pytest.mark.parametrize("actor", [ANN, NODE, "agent:other", "project:p"])
def test_nobody_else_decides(actor: str) -> None:
    assert refused(COORDINATOR, adr(), approved(actor=actor)) == [(3, "not_owner")]
    assert refused(COORDINATOR, adr(), about(KnowledgeRejected(expected_version=1), actor)) == [(3, "not_owner")]


def test_a_coordinator_decides_in_their_projects_only_and_while_they_are_one() -> None:
    assert refused(COORDINATOR, adr(scopes=["project:other"]), approved()) == [(3, "not_owner")]
    assert refused(COORDINATOR, adr(scopes=[P, "project:other"]), approved()) == [(3, "not_owner")]
    dismissed = NewEvent(ProjectMemberAssigned(member=LEAD, roles=[]), "p", NODE)
    assert refused(COORDINATOR, dismissed, adr(), approved()) == [(4, "not_owner")]
    assert refused(COORDINATOR, adr(memory=None), approved()) == [(3, "not_owner")]


@pytest.mark.parametrize(
    "anew",
    [
        KnowledgeRevised(content="another"),
        KnowledgeShared(acl=[]),
        KnowledgeReverted(
            to_version=1, types=["tool"], task="t", content="c", tags={}, scopes=[P], resource_ids=[],
            source=saved().fact.source, score=3,  # type: ignore[attr-defined]  # of a save
        ),
    ],
)  # fmt: skip
def test_what_its_author_states_anew_waits_again_and_what_a_coordinator_states_holds(anew: Fact) -> None:
    assert status(COORDINATOR, adr(), approved(), about(anew)) == "proposed"
    assert status(COORDINATOR, adr(), about(KnowledgeRejected(expected_version=1), LEAD), about(anew)) == "proposed"
    assert status(COORDINATOR, adr(LEAD), about(anew, LEAD)) == "active"


def test_what_a_coordinator_adds_to_a_proposal_does_not_approve_the_rest() -> None:
    revised = about(KnowledgeRevised(tags={"domain": "databases"}), LEAD)
    assert status(COORDINATOR, adr(), revised) == "proposed"
    assert status(COORDINATOR, adr(), approved(), about(KnowledgeRevised(content="evil")), revised) == "proposed"


def test_a_coordinator_revises_retires_and_restores_and_says_neither_whose_it_is_nor_who_reads_it() -> None:
    revised = about(KnowledgeRevised(content="another"), LEAD)
    assert status(COORDINATOR, adr(), approved(), revised) == "active"
    retired, restored = about(KnowledgeRetired(), LEAD), about(KnowledgeRestored(), LEAD)
    assert status(COORDINATOR, adr(), approved(), retired) == "retired"
    assert status(COORDINATOR, adr(), approved(), retired, restored) == "proposed", "whoever restores it"
    assert status(COORDINATOR, adr(LEAD), retired, restored) == "proposed", "others may have revised it"
    assert status(COORDINATOR, adr(), approved(), retired, about(KnowledgeRestored())) == "proposed"
    for fact in (
        KnowledgeRevised(scopes=["public"]),
        KnowledgeRevised(owner=LEAD),
        KnowledgeShared(acl=[]),
        KnowledgeMerged(into="k2", slim="s"),
    ):
        assert refused(COORDINATOR, adr(), approved(), about(fact, LEAD)) == [(4, "not_owner")]
    private = adr(scopes=[ANN])
    assert refused(COORDINATOR, private, revised, retired) == [(3, "not_owner"), (4, "not_owner")]


def test_who_reads_it_decides_whether_a_project_has_to_approve() -> None:
    into = about(KnowledgeRevised(scopes=[P]))
    assert status(COORDINATOR, adr(scopes=[ANN]), into) == "proposed"
    acl = about(KnowledgeShared(acl=[AclEntry(entity=P, permission="read")]))
    assert status(COORDINATOR, adr(scopes=[ANN]), acl) == "proposed"
    assert status(COORDINATOR, adr(), about(KnowledgeRevised(scopes=[ANN]))) == "active"


def test_a_judgement_of_a_reader_decides_nothing() -> None:
    scored = about(KnowledgeScored(score=5, through=P), "agent:other")
    assert status(COORDINATOR, adr(), scored) == "proposed"
    assert status(COORDINATOR, adr(), approved(), scored) == "active"


def test_a_superseded_item_says_by_which_and_comes_back_when_it_is_restored() -> None:
    by = about(KnowledgeSuperseded(by="k2"), LEAD)
    log = [COORDINATOR, adr(), approved(), by]
    bench = view_of(stored(log))
    assert rows(bench.con, "SELECT status, superseded_by FROM knowledge") == [("superseded", "k2")]
    assert rows(bench.con, "SELECT ref FROM lineage WHERE relation = 'superseded_by'") == [("k2",)]
    assert status(*log, about(KnowledgeRestored(), LEAD)) == "proposed"
    back = view_of(stored([*log, about(KnowledgeRestored(), LEAD)]))
    assert rows(back.con, "SELECT superseded_by FROM knowledge") == [(None,)]
    assert refused(COORDINATOR, adr(), about(KnowledgeSuperseded(by="k2"), "agent:other")) == [(3, "not_owner")]
    assert refused(*log, about(KnowledgeSuperseded(by="k3"), LEAD)) == [(5, "illegal_state")]


def role(member: str, *roles: ProjectRole, actor: str = NODE) -> NewEvent:
    return NewEvent(ProjectMemberAssigned(member=member, roles=list(roles)), "p", actor)


def test_the_operator_and_coordinators_give_roles_and_the_last_statement_counts() -> None:
    log = [COORDINATOR, role(ANN, "tester", actor=LEAD), role(ANN, "developer", "tester", actor=LEAD)]
    bench = view_of(stored(log))
    assert rows(bench.con, "SELECT member, roles, actor FROM project_members ORDER BY member") == [
        (LEAD, ["coordinator"], NODE),
        (ANN, ["developer", "tester"], LEAD),
    ]
    assert refused(*log, role("agent:x", "coordinator", actor=ANN)) == [(4, "not_owner")]
    assert refused(role(LEAD, "coordinator", actor=LEAD)) == [(1, "not_owner")]
    gone = view_of(stored([*log, role(LEAD), role(ANN, actor=LEAD)]))
    assert rows(gone.con, "SELECT member FROM project_members") == [(ANN,)]
    assert rows(gone.con, "SELECT code FROM refused_events") == [("not_owner",)]


def test_the_table_of_source_004_says_who_writes_and_who_reads() -> None:
    """Section 2.4.1; a coordinator writes everything."""
    others = {"architect", "reviewer", "tester", "developer", "operations"}
    writes = {kind: {each for each in others if may_propose(kind, [each])} for kind in PROPOSED_BY}
    assert writes == {
        "project_context": set(),
        "adr": {"architect"},
        "convention": {"reviewer"},
        "known_issue": {"tester"},
        "user_preference": others,
    }
    assert all(may_propose(kind, ["coordinator"]) and may_propose(kind, []) for kind in PROPOSED_BY)
    assert {kind: set(roles) for kind, roles in MEANT_FOR.items()} == {
        "project_context": {*others, "coordinator"},
        "adr": {"developer", "tester"},
        "convention": {"developer"},
        "known_issue": {"developer", "operations"},
        "user_preference": {*others, "coordinator"},
    }
    assert meant_for("operations") == ["project_context", "known_issue", "user_preference"]
    assert meant_for("coordinator") == list(MEANT_FOR)
    assert SUPERSEDING_MARGIN == 0.2


def test_a_member_with_roles_proposes_what_these_write() -> None:
    tester = role(ANN, "tester")
    assert refused(tester, adr()) == [(2, "not_owner")]
    assert status(tester, adr(memory=Memory(layer="semantic", kind="known_issue"))) == "proposed"
    assert status(tester, adr(scopes=["project:other"])) == "proposed"


def test_a_role_is_given_to_somebody_and_in_a_project() -> None:
    for member in ("team:web", "public", "lead"):
        with pytest.raises(ValidationError):
            ProjectMemberAssigned(member=member, roles=[])
    assert ProjectMemberAssigned.fault_of_id("ledger") is None
    for project in ("", " ledger", "x" * 193, "a\nb"):
        assert ProjectMemberAssigned.fault_of_id(project) is not None


ITEMS = "SELECT id, status, version FROM knowledge ORDER BY id"


@settings(max_examples=tries(120))
@given(shared_memory(), st.data())
def test_any_batches_of_shared_memory_give_the_same_on_both_roads(events: list[NewEvent], data: st.DataObject) -> None:
    log, found = stored(events), []
    for small in (0, 10_000):
        batch.SMALL = small
        cuts = data.draw(st.lists(st.integers(1, len(log)), max_size=3)) if small else []
        found.append(state(view_of(log, cuts)))
    assert found[0] == found[1]


@settings(max_examples=tries(30))
@given(shared_memory())
def test_events_of_shared_memory_that_are_delivered_twice_count_once(events: list[NewEvent]) -> None:
    log = stored(events)
    each_twice = [one for each in log for one in (each, each)]
    twice = view_of([each._replace(position=at) for at, each in enumerate(each_twice, 1)])
    assert rows(twice.con, "SELECT count(*) FROM events") == rows(view_of(log).con, "SELECT count(*) FROM events")
    assert rows(twice.con, ITEMS) == rows(view_of(log).con, ITEMS)
