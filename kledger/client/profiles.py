"""Profiles of the acting user: what is remembered of them, `user` and `work`; all for `acting_as(user=…)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kledger.answers.profiles import Memories, MemoryHistory, MemoryPrompt, MemoryType
from kledger.client.knowledge import Moment, moment
from kledger.client.wire import Wire

MEMORIES = "/api/v1/memories"


async def both(wire: Wire, *, as_of: Moment | None = None) -> Memories:
    """The two memories of the user, now or as of then."""
    told: Memories = await wire.read(MEMORIES, {"as_of": moment(as_of)})
    return told


async def register(wire: Wire) -> Memories:
    """Begin both memories with their default content; a second time changes nothing."""
    told: Memories = await wire.write("POST", MEMORIES)
    return told


async def get(wire: Wire, memory: MemoryType, *, as_of: Moment | None = None) -> dict[str, Any] | None:
    """The content of one memory, its defaults until something is stated, None while disabled; now or as of then."""
    content: dict[str, Any] | None = await wire.read(f"{MEMORIES}/{memory}", {"as_of": moment(as_of)})
    return content


async def prompt(wire: Wire, memory: MemoryType, *, as_of: Moment | None = None) -> str | None:
    """One memory as the section of a system prompt, `user` for a router and `work` for a worker; None without one."""
    told: MemoryPrompt = await wire.read(f"{MEMORIES}/{memory}/prompt", {"as_of": moment(as_of)})
    return told["prompt"]


async def history(wire: Wire, memory: MemoryType) -> MemoryHistory:
    """Every version of one memory, oldest first. UnknownProfile when it was never created."""
    told: MemoryHistory = await wire.read(f"{MEMORIES}/{memory}/history")
    return told


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
