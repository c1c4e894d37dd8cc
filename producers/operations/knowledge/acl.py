"""ACL of a saved item: the event that shares it, and the bytes that identify a save with its ACL."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kledger.contract.knowledge import AclEntry, Source
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import AclEntryBody, SaveRequest
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared
from ledger.named_ids import named_id
from producers.access.principal import require_addressable
from producers.operations.publish import NAMESPACE, refuse_unkeepable


def first_acl(payload: SaveRequest, caller: Caller) -> KnowledgeShared | None:
    """The ACL in a payload, None where it has none. Raises Forbidden."""
    if not payload.acl:
        return None
    require_addressable(caller, [each.entity for each in payload.acl], "an ACL of yours")
    return stated_acl(payload.acl)


def stated_acl(acl: Iterable[AclEntryBody]) -> KnowledgeShared:
    """The event for an ACL."""
    return KnowledgeShared(acl=[AclEntry(entity=each.entity, permission=each.permission) for each in acl])


def named_entities(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> list[str]:
    """All entities that a save names; their types have to be registered."""
    return [*fact.scopes, fact.owner, *(shared.readers() if shared else ())]


def statement(fact: KnowledgeSaved, shared: KnowledgeShared | None, source: Source | None = None) -> bytes:
    """Canonical bytes of a save with its ACL, without the origin, which may differ between two saves of the same.

    `source` is that of the statement, where the node has filled something into the fact's. Raises InvalidPayload.
    """
    body = refuse_unkeepable(fact, source=source or fact.source)
    if fact.origin is not None:
        stated = fact if source is None else fact.model_copy(update={"source": source})
        body = fact.__pydantic_serializer__.to_json(stated, exclude={"origin"})
    return body if shared is None else body + b"\n" + refuse_unkeepable(shared)


def shared_with_it(event: NewEvent, shared: KnowledgeShared | None) -> list[NewEvent]:
    """The event that shares the item that `event` saves; it is appended in the same atomic batch."""
    return [] if shared is None else [replace(event, fact=shared, id=share_id(event.id), expects=None)]


def share_id(own_id: str) -> str:
    """The id of the sharing event that belongs to the save with this event id."""
    return named_id(NAMESPACE, f"{own_id}\nshared")
