"""What is remembered of a user? The memories `user` and `work`, now and as of any moment (P1, P2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from kledger.contract.errors import InvalidPayload, UnknownProfile
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.events.profile import MemoryType, memory_id
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from projections.views.profiles import ask
from projections.views.profiles.content import default_content, filled
from projections.views.profiles.prompt import READERS, AgentType, build_memory_prompt
from projections.views.profiles.stated import stated as stated_memories

MEMORY_TYPES: tuple[MemoryType, ...] = ("user", "work")


@dataclass(frozen=True, slots=True)
class Memories:
    """Both memories of a user: with their defaults until something is stated, None for one that is disabled."""

    user_memory: JsonObject | None
    work_memory: JsonObject | None
    position: int
    begun: frozenset[MemoryType] = field(default=frozenset())
    """Those that are in the log."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The content of one memory, complete, and the log position that it is of."""

    content: JsonObject | None
    position: int
    is_begun: bool = True


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """A memory as text for the agent that it is for; `prompt` is None for one that is disabled, or not begun yet."""

    memory_type: MemoryType
    agent_type: AgentType
    prompt: str | None
    position: int


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """Every version of one memory, oldest first, each with its content, complete."""

    id: str
    owner: str
    memory_type: MemoryType
    versions: list[JsonObject]
    position: int


def owner_of(caller: Caller) -> str:
    """Whose memories the caller asks for: the user's. Raises InvalidPayload when there is none."""
    person = caller.person()
    if person is None:
        raise InvalidPayload(
            "memories are a user's, and the request names none: send X-Ledger-User",
            errors=[{"field": "X-Ledger-User", "reason": "is required"}],
        )
    return person


async def both(
    desk: Desk, caller: Caller, *, as_of: int | datetime | None = None, freshness: Freshness = ANY
) -> Memories:
    """Both memories of the user, now or as of then. Raises InvalidPayload (no user named; as_of), ViewBehind."""
    owner = owner_of(caller)
    await reach(desk, freshness)
    then = None if as_of is None else await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    found = await desk.view.ask(ask.profiles, desk.org, owner, then)
    begun = frozenset(memory_type for memory_type in MEMORY_TYPES if memory_type in found)
    return Memories(_content(found, "user"), _content(found, "work"), position, begun)


async def one(
    desk: Desk,
    caller: Caller,
    memory_type: MemoryType,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> Memory:
    """One memory of the user, now or as of then. Raises InvalidPayload (no user named; as_of), ViewBehind."""
    found = await both(desk, caller, as_of=as_of, freshness=freshness)
    content = found.user_memory if memory_type == "user" else found.work_memory
    return Memory(content, found.position, memory_type in found.begun)


async def stated_in(desk: Desk, caller: Caller, position: int) -> dict[str, JsonObject]:
    """What was stated in each memory of the user up to a position, by memory type. Raises InvalidPayload (no user)."""
    return await desk.view.ask(stated_memories, desk.org, owner_of(caller), position)


async def prompt(
    desk: Desk,
    caller: Caller,
    memory_type: MemoryType,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> MemoryPrompt:
    """One memory as the section of a system prompt. Raises InvalidPayload (no user named; as_of), ViewBehind."""
    found = await both(desk, caller, as_of=as_of, freshness=freshness)
    section = (await sections(desk, caller, found))[memory_type]
    return MemoryPrompt(memory_type, READERS[memory_type], section, found.position)


async def sections(desk: Desk, caller: Caller, found: Memories) -> dict[MemoryType, str | None]:
    """Each memory as the section of a system prompt; None for one that is disabled, or not begun yet."""
    said = await stated_in(desk, caller, found.position)
    active = {"user": found.user_memory is not None, "work": found.work_memory is not None}
    return {
        memory_type: build_memory_prompt(
            memory_type, said.get(memory_type, {}) if active[memory_type] and memory_type in found.begun else None
        )
        for memory_type in MEMORY_TYPES
    }


async def history(desk: Desk, caller: Caller, memory_type: MemoryType, *, freshness: Freshness = ANY) -> MemoryHistory:
    """Every version of one memory, oldest first. Raises InvalidPayload (no user named), UnknownProfile, ViewBehind."""
    owner = owner_of(caller)
    await reach(desk, freshness)
    position = desk.view.position
    found = await desk.view.ask(ask.versions, desk.org, owner, memory_type)
    if not found:
        raise _no_memory(owner, memory_type)
    for version in found:
        version["content"] = filled(memory_type, version["content"])
    return MemoryHistory(str(memory_id(desk.org, owner, memory_type)), owner, memory_type, found, position)


def _no_memory(owner: str, memory_type: MemoryType) -> UnknownProfile:
    return UnknownProfile(
        f"nothing was stated in the {memory_type} memory of {owner} yet: POST /api/v1/memories begins it"
    )


def _content(found: dict[str, ask.Profile], memory_type: MemoryType) -> JsonObject | None:
    profile = found.get(memory_type)
    if profile is None:
        return default_content(memory_type)
    if profile.status != "active":
        return None
    return filled(memory_type, profile.content)
