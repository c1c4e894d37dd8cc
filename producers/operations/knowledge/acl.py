"""What does a payload say of who else may read and revise its item, and how is that kept with the item (mission S5)?"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from kledger.contract.scopes import Caller
from ledger.event import NewEvent
from ledger.events.knowledge import AclEntry, KnowledgeSaved, KnowledgeShared
from producers.access.principal import require_addressable
from producers.operations.publish import NAMESPACE, refuse_unkeepable
from producers.requests.knowledge import AclEntryBody, SaveRequest


def first_acl(payload: SaveRequest, caller: Caller) -> KnowledgeShared | None:
    """What a payload shares its item with, None for nobody. Raises Forbidden."""
    if not payload.acl:
        return None
    require_addressable(caller, [each.entity for each in payload.acl], "an ACL of yours")
    return stated_acl(payload.acl)


def stated_acl(acl: Iterable[AclEntryBody]) -> KnowledgeShared:
    """An ACL as the event that states it."""
    return KnowledgeShared(acl=[AclEntry(entity=each.entity, permission=each.permission) for each in acl])


def named_entities(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> list[str]:
    """Everybody whom a save names: their types have to be there."""
    return [*fact.scopes, fact.owner, *(shared.readers() if shared else ())]


def statement(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> bytes:
    """What a save says, its ACL included; not where it is from, which two saves of the same may say differently.

    Raises InvalidPayload.
    """
    said = refuse_unkeepable(fact)
    if fact.origin is not None:
        said = fact.__pydantic_serializer__.to_json(fact, exclude={"origin"})
    return said if shared is None else said + b"\n" + refuse_unkeepable(shared)


def shared_with_it(event: NewEvent, shared: KnowledgeShared | None) -> list[NewEvent]:
    """The event that shares what `event` saves; it goes with that, whole or not at all."""
    return [] if shared is None else [replace(event, fact=shared, id=share_id(event.id), expects=None)]


def share_id(own_id: str) -> str:
    """The id of the event that shares what the event of this id saves."""
    return str(uuid.uuid5(NAMESPACE, f"{own_id}\nshared"))
