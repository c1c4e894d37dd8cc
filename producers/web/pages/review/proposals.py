"""Proposals of models: an item rewritten in the light of feedback, and items that say the same merged into one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from starlette.responses import Response

from kledger.answers.knowledge import WholeItem
from kledger.answers.models import Evolution, EvolutionList
from kledger.answers.slims import Slim, SlimGroup, SlimList
from kledger.contract.errors import InvalidPayload
from kledger.contract.words import SlimStatus
from producers.web.differences import Part, beside, differences
from producers.web.pages.review.items import items_of, titles_of
from producers.web.pages.review.reasons import reason_told
from producers.web.pages.review.tab import REVIEW, Tab, decided, offset, reason
from producers.web.site import Site, change
from producers.web.visit import Visit

PER_PAGE, SLIMS_PER_PAGE, MOST_GROUPS = 5, 3, 10
_PATIENCE = 5.0
"""Seconds that a form waits for a merge; a longer one goes on."""
State = Literal["proposed", "applied", "rejected", "reverted", "failed"]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An evolution, its item now, what it would become, and whether it can still be applied."""

    evolution: Evolution
    item: WholeItem | None
    task: list[Part]
    content: list[Part]
    current: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Items that say the same: the one that stays, what a model would make of it, and those that go into it."""

    group: SlimGroup
    survivor: WholeItem | None
    content: list[Part]
    merged: list[tuple[str, float, WholeItem | None]]


@dataclass(frozen=True, slots=True)
class Merge:
    """A slim and its first groups; `current` where some of them can still be merged."""

    slim: Slim
    groups: list[Group]
    left_out: int
    current: bool


async def shown(visit: Visit) -> Mapping[str, Any]:
    """A page of rewrites and one of merges that wait, or with `of` those that came to an end so."""
    of: State = next((state for state in get_args(State) if state == visit.text("of")), "proposed")
    evolutions, listed = await _listed(visit, of)
    slims = await asyncio.gather(*(visit.ledger.slim_get(one["id"]) for one in listed["results"]))
    groups = [one["groups"][:MOST_GROUPS] for one in slims]
    wanted = [one["item_id"] for one in evolutions["results"]]
    wanted += [each["survivor"] for several in groups for each in several]
    wanted += [one["id"] for several in groups for each in several for one in each["merged"]]
    items = await items_of(visit, wanted)
    return {
        "total": evolutions["total"] + listed["total"],
        "of": of,
        "states": get_args(State),
        "rewrites": await beside(lambda: [_rewrite(one, items.get(one["item_id"])) for one in evolutions["results"]]),
        "rewrites_total": evolutions["total"],
        "rewrites_offset": offset(visit, "rewrites"),
        "merges": await beside(
            lambda: [_merge(one, several, items) for one, several in zip(slims, groups, strict=True)]
        ),
        "merges_total": listed["total"],
        "merges_offset": offset(visit, "merges"),
        "reason_told": lambda reason: reason_told(reason, visit.words),
        "size": PER_PAGE,
        "merges_size": SLIMS_PER_PAGE,
    }


async def _listed(visit: Visit, of: State) -> tuple[EvolutionList, SlimList]:
    reported: SlimStatus = "reported" if of == "proposed" else of
    evolutions, merges = await asyncio.gather(
        visit.ledger.evolutions(status=of, limit=PER_PAGE, offset=offset(visit, "rewrites")),
        visit.ledger.slims(status=reported, limit=SLIMS_PER_PAGE, offset=offset(visit, "merges")),
    )
    return evolutions, merges


def _rewrite(evolution: Evolution, item: WholeItem | None) -> Rewrite:
    now, proposed = item or {"task": "", "content": ""}, evolution["content"] or ""
    return Rewrite(
        evolution,
        item,
        differences(now["task"], evolution["task"]) if evolution["task"] else [],
        differences(now["content"], proposed) if proposed else [],
        item is not None and item["status"] == "active" and item["version"] == evolution["base_version"],
    )


def _merge(slim: Slim, groups: Sequence[SlimGroup], items: Mapping[str, WholeItem]) -> Merge:
    current = any(not each["skipped"] for each in slim["groups"])
    return Merge(slim, [_group(each, items) for each in groups], len(slim["groups"]) - len(groups), current)


def _group(group: SlimGroup, items: Mapping[str, WholeItem]) -> Group:
    survivor, written = items.get(group["survivor"]), group["content"]
    parts = differences(survivor["content"], written) if survivor and written else []
    merged = [(one["id"], one["similarity"], items.get(one["id"])) for one in group["merged"]]
    return Group(group, survivor, parts, merged)


async def rewrite(_: Site, visit: Visit) -> Response:
    """Apply a rewrite, reject it, or make the item again what it was."""
    id, words = visit.said("id"), visit.words
    match visit.said("what"):
        case "apply":
            done = await visit.ledger.apply_evolution(id)
            (task,) = await titles_of(visit, done["item_id"])
            told = words("“{task}” says what was proposed.", task=task)
            visit.notify(told, undo=f"{REVIEW}/evolutions", id=id, what="revert")
        case "reject":
            await visit.ledger.reject_evolution(id, reason=reason(visit))
            visit.notify(words("The proposal is rejected; the item stays as it is."))
        case "revert":
            done = await visit.ledger.revert_evolution(id)
            (task,) = await titles_of(visit, done["item_id"])
            visit.notify(words("“{task}” is again what it was before.", task=task))
        case other:
            raise _unknown(other)
    return decided(visit, "proposals")


async def merge(_: Site, visit: Visit) -> Response:
    """Apply merges, reject them, or bring every item back."""
    id, words = visit.said("id"), visit.words
    match visit.said("what"):
        case "apply":
            slim = await visit.ledger.slim_apply(id, wait=_PATIENCE)
            if slim["status"] == "applied" and not slim["merged"]:
                visit.notify(words("Nothing was merged: the items have changed since they were compared."), bad=True)
            else:
                visit.notify(_merged(visit, slim), undo=f"{REVIEW}/slims", id=id, what="revert")
        case "reject":
            await visit.ledger.slim_reject(id, reason=reason(visit))
            visit.notify(words("The merges are rejected; every item stays as it is."))
        case "revert":
            slim = await visit.ledger.slim_revert(id, wait=_PATIENCE)
            back = words("Every item is again what it was before.")
            visit.notify(back if slim["status"] == "reverted" else _under_way(visit))
        case other:
            raise _unknown(other)
    return decided(visit, "proposals")


def _merged(visit: Visit, slim: Slim) -> str:
    if slim["status"] != "applied":
        return _under_way(visit)
    told = visit.words("{n} items are merged.", n=slim["merged"])
    if left := sum(1 for each in slim["groups"] if each["skipped"]):
        told += " " + visit.words("{n} groups are left as they were.", n=left)
    return told


def _under_way(visit: Visit) -> str:
    return visit.words("This is under way: open the page again in a while.")


def _unknown(what: str) -> InvalidPayload:
    return InvalidPayload(f"{what[:100]!r} is nothing to do with a proposal: apply, reject or revert it", errors=[])


TAB = Tab(
    "proposals",
    "Proposals",
    shown,
    (change(f"{REVIEW}/evolutions", rewrite), change(f"{REVIEW}/slims", merge)),
)
