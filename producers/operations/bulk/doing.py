"""Retire, restore or share many items: each is judged alone, and a dry run says what would become of it.

Its events say of which bulk they are a part and who asked for it, so that the log itself tells what a bulk did: to show
it, to revert it, and to answer a retry.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from kledger.answers.bulk import Bulk, BulkResult
from kledger.contract.errors import InvalidPayload
from kledger.contract.knowledge import MOST_SHARED, AclEntry
from kledger.contract.scopes import Caller
from kledger.contract.words import BulkAction
from kledger.requests.knowledge import BulkRequest
from ledger.event import Fact, Lineage
from ledger.events.knowledge import Bulk as BulkOfEvent
from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired, KnowledgeShared
from ledger.item_status import MAKES
from ledger.named_ids import named_id
from producers.operations.admin.scope_types import require_types
from producers.operations.bulk.judging import Change, Stating, carry_out, counted, last_position, titled
from producers.operations.desk import Desk, first_entity, reach_head
from producers.operations.knowledge.sharing import check_new_readers
from producers.operations.publish import mismatch, refuse_unkeepable
from projections.overview.bulks import Did, done_by
from projections.views.knowledge.ask import Standing, acl_of

ACTIONS: Mapping[BulkAction, type[Fact]] = {
    "retire": KnowledgeRetired,
    "restore": KnowledgeRestored,
    "share": KnowledgeShared,
}


async def bulk(
    desk: Desk, caller: Caller, lineage: Lineage, payload: BulkRequest, retry: uuid.UUID | None = None
) -> Bulk:
    """Do the same to many items. A retry with the key goes on where the first request was interrupted.

    Raises IdempotencyMismatch, IllegalScope (whom to share with), InvalidPayload, BrokerUnavailable, ViewBehind.
    """
    added = payload.added()
    await require_types(desk, [entry.entity for entry in added])
    own = retry or uuid.uuid4()
    bulk_id = f"bulk-{named_id(own, 'bulk').replace('-', '')[:16]}"
    part = BulkOfEvent(id=bulk_id, by=first_entity(caller))
    if payload.action != "share":
        refuse_unkeepable(KnowledgeRetired(reason=payload.reason))
    before = {} if retry is None or payload.dry_run else await _before(desk, caller, payload, added, bulk_id)
    changes = {
        item_id: Change(
            _stating(caller, payload, added, part), named_id(own, f"bulk\n{item_id}"), payload.action != "share"
        )
        for item_id in payload.ids
        if item_id not in before
    }
    made = await carry_out(desk, caller, lineage, changes, dry_run=payload.dry_run)
    by_id = {each["id"]: each for each in made} | {
        item_id: BulkResult(id=item_id, task=None, outcome="done", position=did.position, error=None)
        for item_id, did in before.items()
    }
    results = await titled(desk, caller, [by_id[item_id] for item_id in payload.ids])
    is_done = any(each["outcome"] == "done" for each in results)
    return Bulk(
        bulk_id=bulk_id if is_done else None,
        action=payload.action,
        dry_run=payload.dry_run,
        results=results,
        **counted(results),
        position=last_position(desk, results),
    )


def _stating(caller: Caller, payload: BulkRequest, added: Sequence[AclEntry], part: BulkOfEvent) -> Stating:
    if payload.action == "share":
        return lambda item: _shared(caller, item, added, part)
    kind = KnowledgeRetired if payload.action == "retire" else KnowledgeRestored
    fact = kind(reason=payload.reason, bulk=part)
    return lambda item: None if item.status == MAKES[kind.name] else fact


def _shared(caller: Caller, item: Standing, added: Sequence[AclEntry], part: BulkOfEvent) -> KnowledgeShared | None:
    """The ACL of an item with these entries; None where it has them. Who may write before may write after.

    Raises Forbidden, InvalidPayload (more entries than an ACL holds).
    """
    before = {each["entity"]: AclEntry.model_validate(each) for each in acl_of(item.shared_with, item.writers)}
    lacking = {
        entry.entity: entry
        for entry in added
        if entry.entity not in before or (entry.permission == "read_write" and entry.entity not in item.writers)
    }
    if not lacking:
        return None
    acl = list((before | lacking).values())
    if len(acl) > MOST_SHARED:
        raise InvalidPayload(
            f"{item.id} would be shared with {len(acl)}, and {MOST_SHARED} are the most: share it with a group",
            errors=[],
        )
    fact = KnowledgeShared(acl=acl, bulk=part)
    check_new_readers(caller, fact, item)
    return fact


async def _before(
    desk: Desk, caller: Caller, payload: BulkRequest, added: Sequence[AclEntry], bulk_id: str
) -> dict[str, Did]:
    """What an earlier request with the key has done, by item. Raises IdempotencyMismatch where it was another one."""
    await reach_head(desk)
    name = ACTIONS[payload.action].name
    before = {each.item_id: each for each in await desk.view.ask(done_by, desk.org, bulk_id) if is_theirs(caller, each)}
    asked = {(entry.entity, entry.permission) for entry in added}
    for item_id, did in before.items():
        shared = {(each["entity"], each["permission"]) for each in did.acl_after}
        lacks = {one for one in asked - shared if (one[0], "read_write") not in shared}
        if did.type != name or item_id not in payload.ids or lacks or not _same_reason(payload.reason, did):
            raise mismatch()
    return before


def _same_reason(reason: str | None, did: Did) -> bool:
    return did.reason == reason or did.reason_erased


def is_theirs(caller: Caller, did: Did) -> bool:
    """Whether the caller is who asked for the bulk, and the event one that they might have stated: anybody may publish
    an event of their own that names the bulk of another.
    """
    return did.by in caller.reading_as() and (caller.is_operator or did.actor in caller.reading_as())
