"""Show a bulk, and undo it: exactly what it did, where that still stands, however long ago.

A revert is not a bulk of its own. The id of each of its events follows from the one that it undoes, so that a bulk is
reverted once, however often it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kledger.answers.bulk import BulkItem, BulkResult, RevertedBulk
from kledger.contract.errors import IllegalState, UnknownReference, VersionConflict
from kledger.contract.knowledge import AclEntry
from kledger.contract.scopes import Caller
from kledger.contract.words import BulkAction
from kledger.requests.knowledge import RevertBulkRequest
from ledger.event import Fact, JsonObject, Lineage
from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired, KnowledgeShared
from ledger.named_ids import named_id
from producers.operations.bulk.doing import ACTIONS, is_theirs
from producers.operations.bulk.judging import Change, Stating, carry_out, counted, last_position, titled
from producers.operations.desk import ANY, Desk, Freshness, reach, reach_head
from producers.operations.publish import NAMESPACE, refuse_unkeepable
from producers.operations.updated import error_body
from projections.overview.bulks import Did, done_by, tasks_of
from projections.views.knowledge.ask import Standing

_EXACT = {KnowledgeRetired.name: "active", KnowledgeRestored.name: "retired"}
"""The status from which undoing an event leads back to just that status."""


async def show(desk: Desk, caller: Caller, bulk_id: str, *, freshness: Freshness = ANY) -> JsonObject:
    """A bulk of the caller's, or for the operator any. Raises UnknownReference, ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    done = await _of(desk, caller, bulk_id)
    seen = await desk.view.ask(tasks_of, desk.org, caller, [each.item_id for each in done])
    items = [
        BulkItem(id=each.item_id, task=seen[each.item_id], position=each.position, stands=each.stands)
        for each in done
        if each.item_id in seen
    ]
    return {
        "bulk_id": bulk_id,
        "action": _action(done),
        "by": done[0].by,
        "time": done[0].time,
        "reason": done[0].reason,
        "items": items,
        "done": len(items),
        "standing": sum(each["stands"] for each in items),
        "position": position,
    }


async def revert(
    desk: Desk, caller: Caller, lineage: Lineage, bulk_id: str, payload: RevertBulkRequest
) -> RevertedBulk:
    """Undo a bulk of the caller's, or for the operator any, item by item, with the rights that the caller has now.

    Raises UnknownReference, InvalidPayload, BrokerUnavailable, ViewBehind.
    """
    refuse_unkeepable(KnowledgeRetired(reason=payload.reason))
    await reach_head(desk)
    done = await _of(desk, caller, bulk_id)
    by_id: dict[str, BulkResult] = {}
    changes: dict[str, Change] = {}
    for did in done:
        own_id = named_id(NAMESPACE, f"{did.event_id}\nreverted")
        if did.now_event == own_id:
            told = IllegalState(f"{did.item_id} was reverted at position {did.now_position}", id=did.item_id)
            by_id[did.item_id] = BulkResult(
                id=did.item_id, task=None, outcome="unchanged", position=did.now_position, error=error_body(told)
            )
        else:
            changes[did.item_id] = Change(_undoing(did, payload.reason), own_id, did.type != KnowledgeShared.name)
    by_id |= {each["id"]: each for each in await carry_out(desk, caller, lineage, changes, dry_run=False)}
    results = await titled(desk, caller, [by_id[did.item_id] for did in done])
    return RevertedBulk(
        bulk_id=bulk_id,
        action=_action(done),
        results=results,
        **counted(results),
        position=last_position(desk, results),
    )


def _undoing(did: Did, reason: str | None) -> Stating:
    """What undoes an event of an item that is as the event left it. Raises VersionConflict, IllegalState."""

    def stating(item: Standing) -> Fact:
        if item.version_position != did.position:
            changed = f", it was {did.now_change} at position {did.now_position}" if not did.stands else ""
            raise VersionConflict(
                f"{item.id} is not as the bulk left it{changed}: look at it, and change it alone",
                id=item.id,
                current_version=item.version,
            )
        if did.type == KnowledgeShared.name:
            return KnowledgeShared(acl=[AclEntry.model_validate(each) for each in did.acl])
        if did.status != _EXACT[did.type]:
            raise IllegalState(
                f"{item.id} was {did.status} before, and nothing makes it that again: change it alone",
                id=item.id,
                status=item.status,
            )
        kind = KnowledgeRestored if did.type == KnowledgeRetired.name else KnowledgeRetired
        return kind(reason=reason)

    return stating


async def _of(desk: Desk, caller: Caller, bulk_id: str) -> list[Did]:
    """The events of a bulk. Raises UnknownReference where the caller asked for no such bulk."""
    done = await desk.view.ask(done_by, desk.org, bulk_id)
    theirs = done if caller.is_operator else [each for each in done if is_theirs(caller, each)]
    if not theirs:
        raise UnknownReference(
            f"there is no bulk {bulk_id[:200]!r} of yours: who asked for one reverts it, or the operator", ref=bulk_id
        )
    return theirs


def _action(done: Sequence[Did]) -> BulkAction:
    """What the bulk did; what its first event did where others took its name."""
    names = {fact.name: action for action, fact in ACTIONS.items()}
    ((kind, _),) = Counter(each.type for each in done).most_common(1)
    action: BulkAction = names[kind]
    return action
