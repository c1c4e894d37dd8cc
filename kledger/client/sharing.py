"""Requests about who may see an item and why, and about the types of scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.knowledge import KNOWLEDGE
from kledger.client.wire import Wire, segment, without_none

if TYPE_CHECKING:
    from kledger.answers.parts import Moved
    from kledger.answers.sharing import RegisteredScopeType, ScopeTypes, Why

SCOPE_TYPES = "/api/scope_types"


async def share(
    wire: Wire,
    id: str,
    acl: Sequence[Mapping[str, str]],
    *,
    expected_version: int | None = None,
    idempotency_key: str | None = None,
) -> Moved:
    """State the whole ACL of an item: `{"entity": "team:web", "permission": "read"}` or `"read_write"` each.

    Those it names read the item beside those in its scopes; who may write may revise it. An empty list takes all of
    it back. Only the owner may (NotOwner). With `expected_version` it is refused (VersionConflict) when somebody was
    faster.
    """
    body = {"acl": list(acl), **without_none(expected_version=expected_version)}
    return await wire.write("PUT", f"{KNOWLEDGE}/{segment(id)}/acl", body, idempotency_key=idempotency_key)


async def why_visible(wire: Wire, id: str) -> Why:
    """Why the caller may read an item, since which event, and who may change it. UnknownKnowledge when they may not."""
    return await wire.read(f"{KNOWLEDGE}/{segment(id)}/why")


async def scope_types(wire: Wire) -> ScopeTypes:
    """The built-in types and the registered ones, the most specific first."""
    return await wire.read(SCOPE_TYPES)


async def register_scope_type(
    wire: Wire, type: str, priority: float, *, idempotency_key: str | None = None
) -> RegisteredScopeType:
    """Register a type of scope, or give it another priority; its place among user 6, project 5, agent 4, team 3,
    org 2, public 1. The operator's alone (NotOwner)."""
    body = {"type": type, "priority": priority}
    return await wire.write("POST", SCOPE_TYPES, body, idempotency_key=idempotency_key)


class SharingEndpoints:
    """Who may see an item, and the types of scopes."""

    share = Endpoint(share)
    why_visible = Endpoint(why_visible)
    scope_types = Endpoint(scope_types)
    register_scope_type = Endpoint(register_scope_type)
