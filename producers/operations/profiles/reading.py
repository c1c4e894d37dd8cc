"""Reads of a user's memories `user` and `work`, now and as of any moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from kledger.answers.profiles import ProfilePrompt
from kledger.contract.errors import InvalidPayload, UnknownProfile
from kledger.contract.language import ENGLISH, Language
from kledger.contract.scopes import Caller
from kledger.contract.words import ProfileType
from ledger.event import JsonObject
from ledger.events.profile import memory_id
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from projections.views.profiles import ask
from projections.views.profiles.content import default_content, filled
from projections.views.profiles.prompt import READERS, build_memory_prompt
from projections.views.profiles.stated import stated as stated_memories

MEMORY_TYPES: tuple[ProfileType, ...] = ("user", "work")


@dataclass(frozen=True, slots=True)
class Memories:
    """Both memories of a user: defaults until something is written, None for a disabled one."""

    user_memory: JsonObject | None
    work_memory: JsonObject | None
    position: int
    begun: frozenset[ProfileType] = field(default=frozenset())
    """The memories that are in the log."""


@dataclass(frozen=True, slots=True)
class Memory:
    """The complete content of one memory, and its log position."""

    content: JsonObject | None
    position: int


def owner_of(caller: Caller) -> str:
    """The user whose memories are requested. Raises InvalidPayload where the caller names none."""
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
    """Both memories of the user, now or as of a moment. Raises InvalidPayload (no user named; as_of), ViewBehind."""
    owner = owner_of(caller)
    await reach(desk, freshness)
    then = await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    profiles = await desk.view.ask(ask.profiles, desk.org, owner, then)
    begun = frozenset(memory_type for memory_type in MEMORY_TYPES if memory_type in profiles)
    return Memories(_content(profiles, "user"), _content(profiles, "work"), position, begun)


async def one(
    desk: Desk,
    caller: Caller,
    memory_type: ProfileType,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> Memory:
    """One memory of the user, now or as of a moment. Raises InvalidPayload (no user named; as_of), ViewBehind."""
    memories = await both(desk, caller, as_of=as_of, freshness=freshness)
    content = memories.user_memory if memory_type == "user" else memories.work_memory
    return Memory(content, memories.position)


async def stated_in(desk: Desk, caller: Caller, position: int) -> dict[str, JsonObject]:
    """The written content of each memory up to a position, by memory type. Raises InvalidPayload (no user)."""
    return await desk.view.ask(stated_memories, desk.org, owner_of(caller), position)


async def prompt(
    desk: Desk,
    caller: Caller,
    memory_type: ProfileType,
    *,
    as_of: int | datetime | None = None,
    language: Language = ENGLISH,
    freshness: Freshness = ANY,
) -> tuple[ProfilePrompt, int]:
    """A memory as a prompt's section, and its position. Raises InvalidPayload (no user; as_of), ViewBehind."""
    memories = await both(desk, caller, as_of=as_of, freshness=freshness)
    section = (await sections(desk, caller, memories, language))[memory_type]
    answer = ProfilePrompt(memory_type=memory_type, agent_type=READERS[memory_type], prompt=section)
    return answer, memories.position


async def sections(desk: Desk, caller: Caller, memories: Memories, language: Language) -> dict[ProfileType, str | None]:
    """Each memory as the section of a system prompt; None for a disabled or missing memory."""
    written = await stated_in(desk, caller, memories.position)
    active = {"user": memories.user_memory is not None, "work": memories.work_memory is not None}
    return {
        memory_type: build_memory_prompt(
            memory_type,
            written.get(memory_type, {}) if active[memory_type] and memory_type in memories.begun else None,
            language,
        )
        for memory_type in MEMORY_TYPES
    }


async def history(
    desk: Desk, caller: Caller, memory_type: ProfileType, before: int | None = None, *, freshness: Freshness = ANY
) -> JsonObject:
    """Every version of one memory before a position, oldest first: the latest, and `next`, where they are more than fit
    into an answer. Raises InvalidPayload (no user named), UnknownProfile, ViewBehind.
    """
    owner = owner_of(caller)
    await reach(desk, freshness)
    position = desk.view.position
    versions, earlier = await desk.view.ask(ask.versions, desk.org, owner, memory_type, before)
    if not versions and before is None:
        raise _no_memory(owner, memory_type)
    for version in versions:
        version["content"] = filled(memory_type, version["content"])
    name = str(memory_id(desk.org, owner, memory_type))
    found = {"id": name, "owner": owner, "memory_type": memory_type, "versions": versions, "position": position}
    return found if earlier is None else {**found, "next": earlier}


def _no_memory(owner: str, memory_type: ProfileType) -> UnknownProfile:
    return UnknownProfile(
        f"nothing was stated in the {memory_type} memory of {owner} yet: POST /api/v1/memories begins it"
    )


def _content(profiles: dict[str, ask.Profile], memory_type: ProfileType) -> JsonObject | None:
    profile = profiles.get(memory_type)
    if profile is None:
        return default_content(memory_type)
    if profile.status != "active":
        return None
    return filled(memory_type, profile.content)
