"""Proposals: whether a new item waits for a coordinator of the project that is to share it."""

from __future__ import annotations

from kledger.contract.errors import NotOwner
from kledger.contract.projects import COORDINATOR, PROPOSED_BY, is_shared_kind, may_propose, projects_among, scope_of
from kledger.contract.words import ItemStatus
from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared
from ledger.readers import readers
from producers.operations.desk import Desk, folded
from projections.views.projects import ask


def waits_for_a_project(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> bool:
    """Whether a save is of something that a project shares."""
    kind = None if fact.memory is None else fact.memory.kind
    return is_shared_kind(kind) and bool(_projects(fact, shared))


def _projects(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> list[str]:
    return projects_among(readers(fact.scopes, shared.readers() if shared else (), fact.owner))


async def first_status(desk: Desk, fact: KnowledgeSaved, shared: KnowledgeShared | None) -> ItemStatus:
    """The status that a save begins with. Raises NotOwner (the owner's role in the project proposes no such kind),
    ViewBehind."""
    kind = None if fact.memory is None else fact.memory.kind
    if kind is None or not is_shared_kind(kind) or not (projects := _projects(fact, shared)):
        return "active"
    for project in projects:  # a role may have been given a moment ago
        await folded(desk, "project", project)
    roles = await desk.view.ask(ask.roles, desk.org, fact.owner, projects)
    for project in projects:
        if not may_propose(kind, roles.get(project, ())):
            those = ", ".join([COORDINATOR, *next(by for each, by in PROPOSED_BY.items() if each == kind)])
            raise NotOwner(
                f"{fact.owner} is {', '.join(roles[project])} in {scope_of(project)}, and {kind} is proposed there by "
                f"its {those}: ask one of them, or have a coordinator give you that role",
                owner=fact.owner,
            )
    return "active" if all(COORDINATOR in roles.get(project, ()) for project in projects) else "proposed"
