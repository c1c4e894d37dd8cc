"""Revert of an item: its owner publishes an earlier version again, with all its fields."""

from __future__ import annotations

import uuid

from kledger.answers.models import Reverted
from kledger.contract.errors import Erased, InvalidPayload, VersionConflict
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger.event import Lineage, NewEvent
from producers.access.principal import require_addressable
from producers.operations.desk import Desk
from producers.operations.knowledge.changes import owned_or_earlier, refuse_other_version
from producers.operations.knowledge.over import refuse_over
from producers.operations.knowledge.superseding import came_to_be, came_to_be_before
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import event_id, publish
from projections.views.knowledge.versions import Version, version_made_at, version_of
from projections.views.lineage.ask import StatedEvent


async def revert(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    to_version: int,
    *,
    expected_version: int | None = None,
    cause: str | None = None,
    retry: uuid.UUID | None = None,
) -> Reverted:
    """Restore every field of a version, whether the item was rewritten, revised or scored since.

    Raises UnknownKnowledge, NotOwner, InvalidPayload (no such version), VersionConflict (`expected_version`), Erased,
    Forbidden, BrokerUnavailable, ViewBehind.
    """

    def reverted(version: int, position: int, status: ItemStatus | None) -> Reverted:
        told = Reverted(id=item_id, position=position, event_id=own_id, to_version=to_version, version=version)
        if status is not None:
            told["status"] = status
        return told

    own_id, fields = event_id(retry), {"to_version": to_version, "cause": cause}
    for _ in range(ATTEMPTS):
        standing = await owned_or_earlier(desk, caller, item_id, own_id, fields, retry)
        if isinstance(standing, StatedEvent):
            version = await desk.view.ask(version_made_at, desk.org, item_id, standing.position)
            return reverted(version, *await came_to_be_before(desk, caller, item_id, standing.position, own_id))
        item, last, actor = standing
        refuse_other_version(item, expected_version)
        await refuse_over(desk, item)
        earlier = await _earlier(desk, item_id, to_version)
        require_addressable(caller, earlier.scopes, "what you state anew", item.scopes)
        event = NewEvent(earlier.stated_anew(cause), item_id, actor, desk.org, lineage, id=own_id, expects=last)
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return reverted(item.version + 1, *await came_to_be(desk, caller, lineage, item, [appended]))
    raise others_write_to(item_id)


async def _earlier(desk: Desk, item_id: str, to_version: int) -> Version:
    version: Version | None = await desk.view.ask(version_of, desk.org, item_id, to_version)
    if version is None:
        raise InvalidPayload(
            f"{item_id} never had a version {to_version}: its history tells which it had",
            errors=[{"field": "to_version", "reason": "is no version of this item"}],
        )
    if version.erased:
        raise Erased(
            f"what version {to_version} of {item_id} said was erased with the person it belonged to", id=item_id
        )
    return version
