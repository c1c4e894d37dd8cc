"""Slims: merges of similar items, requested here, then applied, rejected or reverted by their owner.

A reactor does the work: an interface publishes the request and waits for its outcome.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import reduce

from kledger.contract.errors import IllegalState, NotAvailable, NotOwner, VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.slims import SlimRequest
from ledger import one_answer
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.slim import SlimApproved, SlimRejected, SlimRequested, SlimWithdrawn
from ledger.events.usage import Usage, together
from producers.operations.desk import ANY, Desk, Freshness, first_entity, reach
from producers.operations.models.processes import caused, own_now, settled
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import begun, earlier_event, request_fields
from projections.similar import ask
from projections.similar.ask import Proposed, Standing
from projections.similar.outdated import items_of, outdated
from projections.views.processes.ask import Process

KIND = "slim"
PATIENCE = 5.0
"""Default number of seconds that an answer waits; a slim of thousands of items takes longer than any client waits."""
_ENDED = {"applied", "reverted", "rejected", "failed"}

Answer = tuple[JsonObject, bool]
"""A slim, and whether it is settled."""


async def slim(
    desk: Desk, caller: Caller, lineage: Lineage, payload: SlimRequest, retry: uuid.UUID | None = None
) -> Answer:
    """Merge the caller's items that say the same, or (dry run) report which would be merged.

    Raises NotOwner, IdempotencyMismatch, PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    owner = payload.owner or first_entity(caller)
    if not caller.may_act_for(owner):
        raise NotOwner(f"you may not slim what {owner} owns: leave `owner` out to slim your own items", owner=owner)
    own_id = event_id(retry)
    fact = SlimRequested(
        owner=owner,
        scopes=None if payload.scopes is None else list(dict.fromkeys(payload.scopes)),
        model=_model(desk, payload.model),
        threshold=payload.threshold,
        apply=not payload.dry_run,
    )

    def event(name: str) -> NewEvent:
        return NewEvent(fact, name, owner, desk.org, lineage, id=own_id, expects=0)

    name = await begun(desk, caller, KIND, own_id, event, retry)
    return await awaited(desk, caller, name, PATIENCE if payload.wait is None else payload.wait)


async def awaited(
    desk: Desk, caller: Caller, process_id: str, wait: float, until: frozenset[str] = frozenset()
) -> Answer:
    """A slim once it is settled (or at one of the stages `until`), or as it is after `wait` seconds.

    Raises UnknownProcess, BrokerUnavailable, ViewBehind.
    """

    async def is_settled(process: Process) -> bool:
        if until:
            return process.stage in until
        return process.stage in _ENDED or (process.stage == "reported" and not process.requested["apply"])

    current, done = await settled(desk, caller, KIND, process_id, is_settled, wait)
    groups: list[Proposed] = await desk.view.ask(ask.proposed_groups, desk.org, process_id)
    skipped = await _outdated(desk, current, groups) if current.stage == "reported" else _skipped(current)
    left = [each for each in groups if each.group in skipped]
    still = 0
    if current.stage == "reverted" and left:
        still = len(await desk.view.ask(ask.merged_among, desk.org, items_of(left), current.position))
    return {
        **shown(current),
        "groups": _groups(groups, skipped),
        **_totals(current, groups, skipped, still),
        "done": done,
    }, done


async def apply(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    retry: uuid.UUID | None = None,
    *,
    wait: float = PATIENCE,
) -> Answer:
    """Apply the merges of the groups that are as they were compared.

    Raises UnknownProcess, IllegalState, VersionConflict (also where no group is so any more), BrokerUnavailable,
    ViewBehind.
    """
    await _decide(desk, caller, lineage, process_id, SlimApproved(), ("reported", "approved"), "applied", retry)
    return await awaited(desk, caller, process_id, wait, frozenset({"applied", "failed", "withdrawn", "reverted"}))


async def reject(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Answer:
    """Reject the merges. Raises UnknownProcess, IllegalState, VersionConflict, BrokerUnavailable, …"""
    await _decide(desk, caller, lineage, process_id, SlimRejected(reason=reason), ("reported",), "rejected", retry)
    return await awaited(desk, caller, process_id, PATIENCE, frozenset({"rejected"}))


async def revert(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    retry: uuid.UUID | None = None,
    *,
    wait: float = PATIENCE,
) -> Answer:
    """Undo the merges. Raises UnknownProcess, IllegalState, VersionConflict, BrokerUnavailable, …"""
    stages = ("applied", "failed", "withdrawn")
    await _decide(desk, caller, lineage, process_id, SlimWithdrawn(), stages, "reverted", retry)
    return await awaited(desk, caller, process_id, wait, frozenset({"reverted"}))


async def _decide(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    fact: SlimApproved | SlimRejected | SlimWithdrawn,
    stages: Sequence[str],
    become: str,
    retry: uuid.UUID | None,
) -> None:
    """Publish the owner's decision where the slim is at one of these stages; a no-op where it took effect already."""
    process, expects = await own_now(desk, caller, KIND, process_id)
    own_id = event_id(retry)
    if retry is not None and await earlier_event(desk, [process.owner], own_id, request_fields(fact)) is not None:
        return
    if process.stage == become:
        return
    if process.stage not in stages:
        raise IllegalState(
            f"the slim {process_id} is {process.stage}: only one that is {' or '.join(stages)} can be {become}",
            id=process_id,
            status=process.stage,
        )
    if isinstance(fact, SlimApproved) and process.stage == "reported":
        await _require_a_group(desk, process)
    event = NewEvent(fact, process.id, process.owner, desk.org, caused(lineage, process), id=own_id, expects=expects)
    await publish(desk.ledger, desk.tally, [event])


def shown(process: Process) -> JsonObject:
    """A slim as JSON, as lists show it."""
    request, reported = process.requested, process.said.get("reported", {})
    ended = process.said.get("failed") or process.said.get("rejected") or {}
    return {
        **process.shown(),
        "scopes": request.get("scopes"),
        "model": request.get("model"),
        "threshold": request["threshold"],
        "dry_run": not request["apply"],
        "candidates": reported.get("candidates"),
        "seconds": reported.get("seconds"),
        "items_before": reported.get("items"),
        "reason": ended.get("reason"),
        "code": ended.get("code"),
    }


async def get(desk: Desk, caller: Caller, process_id: str, wait: float, freshness: Freshness = ANY) -> Answer:
    """One slim of the caller's with its groups. Raises UnknownProcess, ViewBehind, BrokerUnavailable."""
    await reach(desk, freshness)
    return await awaited(desk, caller, process_id, wait)


def _model(desk: Desk, requested: str | None) -> str | None:
    """The model for the merges; None where none is configured, even if one was requested."""
    try:
        return desk.models.named("slim", requested) or None
    except NotAvailable:
        return None


async def _require_a_group(desk: Desk, process: Process) -> None:
    """Raise VersionConflict where every group has changed, so that nothing is called applied that merged nothing."""
    groups: list[Proposed] = await desk.view.ask(ask.proposed_groups, desk.org, process.id)
    skipped = await _outdated(desk, process, groups)
    if groups and len(skipped) == len(groups):
        first = next(iter(skipped.values()))
        raise VersionConflict(
            f"the slim {process.id} can merge nothing any more: {first}; reject it, and ask anew", id=process.id
        )


async def _outdated(desk: Desk, process: Process, groups: Sequence[Proposed]) -> dict[int, str]:
    """Reasons of groups that would be skipped now, since their items have changed."""
    now: dict[str, Standing] = await desk.view.ask(ask.standings, desk.org, items_of(groups)) if groups else {}
    return {each.group: why for each in groups if (why := outdated(process.owner, each, now))}


def _groups(proposed: Sequence[Proposed], skipped: Mapping[int, str]) -> list[JsonObject]:
    groups = [
        {
            "group": each.group,
            "survivor": each.survivor,
            "merged": [{"id": name, "similarity": alike} for name, _, alike in each.merged],
            "types": each.types,
            "task": each.task,
            "content": each.content,
            "tags": each.tags,
            "usage": each.usage,
            "skipped": skipped.get(each.group),
        }
        for each in proposed
    ]
    return one_answer.with_room(groups)


def _totals(process: Process, groups: Sequence[Proposed], skipped: Mapping[int, str], still: int) -> JsonObject:
    """Totals of a slim: remaining items, merged items (`still` once it is reverted), usage of the model, and a note."""
    items = process.said.get("reported", {}).get("items")
    if process.stage == "reverted":
        merged = still
    elif process.stage == "rejected":
        merged = 0
    else:
        merged = sum(len(each.merged) for each in groups if each.group not in skipped)
    paid = [Usage.model_validate(each.usage) for each in groups if each.usage is not None]
    usage = reduce(together, paid).model_dump() if paid else None
    note = None
    if items == 0:
        note = f"{process.owner} owns no item that could be merged: an operator says with `owner` whose items are meant"
    elif groups and not paid and "reported" in process.said:
        why = "all its items say the same word for word" if process.requested.get("model") else "no model is configured"
        note = f"the best item of each group is kept as it is: {why}"
    return {"items_after": None if items is None else items - merged, "merged": merged, "usage": usage, "note": note}


def _skipped(process: Process) -> dict[int, str]:
    """Reasons of skipped groups: not merged when applied, not all as before when reverted."""
    stage = "reverted" if process.stage == "reverted" else "applied"
    return {each["group"]: each["reason"] for each in process.said.get(stage, {}).get("skipped", ())}
