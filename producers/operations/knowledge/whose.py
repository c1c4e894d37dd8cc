"""As whom a caller changes an item: as its owner, or as a coordinator of the projects that share it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from kledger.contract.projects import is_shared_kind, projects_among, scope_of
from kledger.contract.scopes import Caller
from ledger.readers import readers
from producers.operations.desk import Desk
from producers.operations.stating import not_owner
from projections.views.knowledge.ask import Standing
from projections.views.projects import ask


def shared_in(item: Standing) -> list[str]:
    """The projects that have to approve what an item says; none where it is nothing that a project shares."""
    everybody = readers(item.scopes, item.shared_with, item.owner)
    return projects_among(everybody) if is_shared_kind(item.kind) else []


async def coordinator(desk: Desk, caller: Caller, item: Standing) -> str | None:
    """The entity of the caller that coordinates each project that shares the item; None where there is none."""
    return (await coordinators(desk, caller, [item])).get(item.id)


async def coordinators(desk: Desk, caller: Caller, items: Collection[Standing]) -> dict[str, str]:
    """The entity of the caller that coordinates each of these items, by the item's id, where there is one."""
    shared = {item.id: projects for item in items if (projects := shared_in(item))}
    if not shared:
        return {}
    every = sorted({each for projects in shared.values() for each in projects})
    by_project = await desk.view.ask(ask.coordinators_of, desk.org, every)
    leads = {
        item_id: next((each for each in caller.reading_as() if all(each in by_project[one] for one in projects)), None)
        for item_id, projects in shared.items()
    }
    return {item_id: lead for item_id, lead in leads.items() if lead is not None}


def acting_as(caller: Caller, item: Standing, lead: str | None = None) -> str:
    """The entity as which a caller changes an item: as `lead`, its coordinator, else as its owner. Raises NotOwner."""
    if lead is not None:
        return lead
    if caller.may_act_for(item.owner):
        return item.owner
    raise not_owner(f"change {item.id}, which {item.owner} owns", item.owner, caller)


async def changer(desk: Desk, caller: Caller, item: Standing) -> str | None:
    """The entity as which the caller revises, retires or restores an item; None where they may not."""
    return item.owner if caller.may_act_for(item.owner) else await coordinator(desk, caller, item)


async def with_their_projects(desk: Desk, caller: Caller) -> Caller:
    """The caller, who sees what the projects share that they coordinate."""
    if caller.is_operator:
        return caller
    projects = await desk.view.ask(ask.coordinated, desk.org, caller.entities())
    return replace(caller, further=(*caller.further, *map(scope_of, projects)))
