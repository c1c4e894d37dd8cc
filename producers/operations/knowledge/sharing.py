"""Sharing: the ACL of an item, who may revise it, and why the caller can see it.

Only the owner shares an item. An entity with write permission in the ACL may revise the item's fields, but not its
owner or scopes.
"""

from __future__ import annotations

import uuid

from kledger.answers.parts import Moved
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import ShareRequest
from ledger.event import JsonObject, Lineage
from ledger.events.knowledge import KnowledgeRevised, KnowledgeShared
from producers.access.principal import require_addressable
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import ANY, Desk, Freshness, reach
from producers.operations.knowledge.acl import stated_acl
from producers.operations.knowledge.changes import latest, publish_change, refuse_other_version
from producers.operations.knowledge.over import is_over
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.whose import coordinator
from producers.operations.stating import not_owner
from projections.views.knowledge import ask, why


async def share(
    desk: Desk, caller: Caller, lineage: Lineage, item_id: str, payload: ShareRequest, retry: uuid.UUID | None = None
) -> Moved:
    """Replace the ACL of an item; with an empty one only its scopes decide who reads it.

    Raises UnknownKnowledge, NotOwner, Forbidden (somebody new whom the caller's token may not name), IllegalScope,
    VersionConflict (`expected_version`), BrokerUnavailable, ViewBehind.
    """
    fact = stated_acl(payload.acl)
    await require_types(desk, fact.readers())

    def check(item: ask.Standing) -> None:
        refuse_other_version(item, payload.expected_version)
        check_new_readers(caller, fact, item)

    return await publish_change(desk, caller, lineage, item_id, fact, check, retry=retry)


def check_new_readers(caller: Caller, fact: KnowledgeShared, item: ask.Standing) -> None:
    """Raise Forbidden where an ACL names somebody new whom the caller's token may not name."""
    require_addressable(caller, fact.readers(), "an ACL of yours", item.shared_with)


async def revisable(
    desk: Desk, caller: Caller, item_id: str, revision: KnowledgeRevised | None = None
) -> tuple[ask.Standing, int, str]:
    """An item that the caller may revise or rewrite, its last position, and the acting entity.

    Raises UnknownKnowledge, NotOwner, ViewBehind.
    """
    item, last = await latest(desk, caller, item_id)
    restates = revision is not None and (revision.owner is not None or revision.scopes is not None)
    lead = await coordinator(desk, caller, item)
    if lead is not None and not restates:
        return item, last, lead  # also of what they own in another name: as a coordinator their words hold
    if caller.may_act_for(item.owner):
        return item, last, item.owner
    writer = next((entity for entity in caller.entities() if entity in item.writers), lead)
    if writer is None:
        raise not_owner(f"change {item_id}, which {item.owner} owns", item.owner, caller)
    if restates:
        raise not_owner(f"say whose {item_id} is and who sees it: {item.owner} lets you revise it", item.owner, caller)
    return item, last, writer


async def why_visible(desk: Desk, caller: Caller, item_id: str, *, freshness: Freshness = ANY) -> JsonObject:
    """Why the caller may read an item, since when, and who may change it. Raises UnknownKnowledge, ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    reason = await desk.view.ask(why.why_visible, desk.org, caller, item_id)
    if reason is None:
        raise unknown(item_id)
    recalled = reason["recalled"] and not await is_over(desk, item_id)
    return {**reason, "recalled": recalled, "position": position}
