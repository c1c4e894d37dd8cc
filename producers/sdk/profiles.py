"""What is remembered of the acting user? Two memories, `user` and `work`; all for `acting_as(user=…)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from producers.sdk.answers import Memories
from producers.sdk.wire import Wire

MEMORIES = "/api/v1/memories"
MemoryType = Literal["user", "work"]


async def both(wire: Wire) -> Memories:
    """The two memories of the user."""
    told: Memories = await wire.read(MEMORIES)
    return told


async def register(wire: Wire) -> Memories:
    """Begin both memories with their default content; a second time changes nothing."""
    told: Memories = await wire.write("POST", MEMORIES)
    return told


async def get(wire: Wire, memory: MemoryType) -> dict[str, Any] | None:
    """The content of one memory, None when there is none or it is disabled."""
    content: dict[str, Any] | None = await wire.read(f"{MEMORIES}/{memory}")
    return content


async def put(
    wire: Wire, memory: MemoryType, content: Mapping[str, Any], *, idempotency_key: str | None = None
) -> dict[str, Any]:
    """State the whole content anew. InvalidPayload names the field that does not fit."""
    told: dict[str, Any] = await wire.write(
        "PUT", f"{MEMORIES}/{memory}", {"content": content}, idempotency_key=idempotency_key
    )
    return told


async def patch(
    wire: Wire, memory: MemoryType, content: Mapping[str, Any], *, idempotency_key: str | None = None
) -> dict[str, Any]:
    """State part of the content anew: a JSON merge patch (RFC 7396), null removes a field."""
    told: dict[str, Any] = await wire.write(
        "PATCH", f"{MEMORIES}/{memory}", {"content": content}, idempotency_key=idempotency_key
    )
    return told


async def disable(wire: Wire, memory: MemoryType, *, idempotency_key: str | None = None) -> None:
    """Have a memory not used any more; its history stays, and a `put` makes it active again."""
    await wire.write("DELETE", f"{MEMORIES}/{memory}", idempotency_key=idempotency_key)
