"""Random roles of members in a project, and a random log of what one project shares."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from kledger.contract.memory import Memory
from kledger.contract.words import ProjectRole, SharedKind
from ledger.event import Fact, NewEvent
from ledger.events.knowledge import (
    KnowledgeApproved,
    KnowledgeRejected,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeSuperseded,
)
from ledger.events.project import ProjectMemberAssigned
from tests.projections.sharing import shares

PROJECT = "p"
NODE, LEAD, ANN = "user:local", "agent:lead", "user:ann"
ACTORS = (LEAD, ANN, "agent:a")
ITEMS = ("one", "two")


def assigned() -> st.SearchStrategy[ProjectMemberAssigned]:
    """The roles of a member."""
    roles = st.lists(st.sampled_from(get_args(ProjectRole)), max_size=2)
    return st.builds(ProjectMemberAssigned, member=st.sampled_from(["agent:a", "user:王", LEAD, ANN]), roles=roles)


_versions = st.integers(1, 3)
_readers = st.lists(st.sampled_from([f"project:{PROJECT}", "project:other", ANN, "public"]), min_size=1, max_size=2)
_about: st.SearchStrategy[Fact] = st.one_of(
    st.builds(KnowledgeApproved, expected_version=_versions),
    st.builds(KnowledgeApproved, expected_version=_versions),
    st.builds(KnowledgeRejected, expected_version=_versions),
    st.builds(KnowledgeRevised, content=st.text("ab", min_size=1, max_size=3), scopes=st.none() | _readers),
    st.builds(KnowledgeRetired),
    st.builds(KnowledgeRestored),
    st.builds(KnowledgeSuperseded, by=st.sampled_from(ITEMS)),
    st.builds(KnowledgeScored, score=st.integers(1, 5), through=st.none() | st.just(f"project:{PROJECT}")),
    shares(ACTORS),
)


@st.composite
def shared_memory(draw: st.DrawFn) -> list[NewEvent]:
    """Events of two memories that a project may share, and of who does what in it; most of them are accepted."""
    events = [NewEvent(ProjectMemberAssigned(member=LEAD, roles=["coordinator"]), PROJECT, NODE)]
    for item in ITEMS:
        owner = draw(st.sampled_from(ACTORS))
        memory = Memory(layer="semantic", kind=draw(st.sampled_from(get_args(SharedKind))))
        fact = KnowledgeSaved(
            types=["tool"], task="t", content="c", scopes=draw(_readers), owner=owner, memory=memory,
            supersedes=draw(st.none() | st.sampled_from(ITEMS)),
        )  # fmt: skip
        events.append(NewEvent(fact, item, owner))
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.integers(0, 5)) == 0:
            events.append(NewEvent(draw(assigned()), PROJECT, draw(st.sampled_from([NODE, *ACTORS]))))
        else:
            events.append(NewEvent(draw(_about), draw(st.sampled_from(ITEMS)), draw(st.sampled_from([LEAD, *ACTORS]))))
    return events
