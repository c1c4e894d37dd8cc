"""What is remembered of a user? The memories `user` and `work`: read, stated anew, patched, disabled (P1, P2)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from ledger.errors import IllegalState, InvalidPayload, UnknownProfile, VersionConflict
from ledger.event import Fact, JsonObject, Lineage, NewEvent, utc_now
from ledger.events.profile import (
    MemoryType,
    ProfileCreated,
    ProfileDisabled,
    ProfilePatched,
    ProfileReplaced,
    profile_id,
)
from ledger.scopes import Caller
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from producers.operations.knowledge import ATTEMPTS
from producers.publish import event_id, publish
from producers.requests import refusal
from projections.lineage import ask as events
from projections.profiles import ask
from projections.profiles.content import default_content, filled, unknown_names, validated
from projections.profiles.merge_patch import merge_patch
from projections.profiles.prompt import READERS, AgentType, build_memory_prompt
from projections.profiles.stamping import stamped
from projections.profiles.stated import stated as stated_memories

MEMORY_TYPES: tuple[MemoryType, ...] = ("user", "work")


@dataclass(frozen=True, slots=True)
class Memories:
    """Both memories of a user; None for one that was never created, or is disabled."""

    user_memory: JsonObject | None
    work_memory: JsonObject | None
    position: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The content of one memory, complete, and the log position that it is of."""

    content: JsonObject | None
    position: int


@dataclass(frozen=True, slots=True)
class MemoryPrompt:
    """A memory as text for the agent that it is for; `prompt` is None where there is none that is active."""

    memory_type: MemoryType
    agent_type: AgentType
    prompt: str | None
    position: int


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """Every version of one memory, oldest first, each with its content, complete."""

    owner: str
    memory_type: MemoryType
    versions: list[JsonObject]
    position: int


@dataclass(frozen=True, slots=True)
class Disabled:
    """A memory that is not to be used any more."""

    owner: str
    memory_type: MemoryType
    status: str
    position: int
    event_id: str


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
    return Memories(_content(found, "user"), _content(found, "work"), position)


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
    return Memory(found.user_memory if memory_type == "user" else found.work_memory, found.position)


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
    memory = await one(desk, caller, memory_type, as_of=as_of, freshness=freshness)
    said = await stated_in(desk, caller, memory.position)
    section = None if memory.content is None else build_memory_prompt(memory_type, said.get(memory_type, {}))
    return MemoryPrompt(memory_type, READERS[memory_type], section, memory.position)


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
    return MemoryHistory(owner, memory_type, found, position)


def _no_memory(owner: str, memory_type: MemoryType) -> UnknownProfile:
    return UnknownProfile(f"{owner} has no {memory_type} memory: POST /api/v1/memories creates it")


def _content(found: dict[str, ask.Profile], memory_type: MemoryType) -> JsonObject | None:
    profile = found.get(memory_type)
    if profile is None or profile.status != "active":
        return None
    return filled(memory_type, profile.content)


async def register(desk: Desk, caller: Caller, lineage: Lineage) -> Memories:
    """Create what the user has not yet, with default content; asking again changes nothing.

    Raises InvalidPayload (no user named), BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    position = 0
    for memory_type in MEMORY_TYPES:
        fact = ProfileCreated(owner=owner, memory_type=memory_type, content=default_content(memory_type))
        last = await desk.ledger.last_position_of(desk.org, "profile", profile_id(owner, memory_type))
        if desk.view.position < last:
            await desk.view.wait_for(last)
        if memory_type in await desk.view.ask(ask.profiles, desk.org, owner):
            continue
        event = NewEvent(fact, profile_id(owner, memory_type), owner, desk.org, lineage, expects=last)
        try:
            (kept,) = await publish(desk.ledger, desk.tally, [event])
            position = kept.position
        except VersionConflict:  # somebody registered the same user in between
            position = max(position, (await desk.ledger.head()).position)
    if desk.view.position < position:
        await desk.view.wait_for(position)
    return await both(desk, caller)


async def replace(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: MemoryType,
    content: JsonObject,
    retry: uuid.UUID | None = None,
) -> Memory:
    """State a memory anew, whole; one that is missing is created, one that is disabled is active again.

    Raises InvalidPayload, PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    now = utc_now()

    def stated(profile: ask.Profile | None) -> tuple[Fact, JsonObject]:
        whole = _checked(memory_type, stamped(memory_type, content, _before(memory_type, profile), now))
        return ProfileReplaced(owner=owner, memory_type=memory_type, content=whole), whole

    return await _change(desk, owner, lineage, memory_type, stated, retry)


async def patch(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: MemoryType,
    changes: JsonObject,
    retry: uuid.UUID | None = None,
) -> Memory:
    """State part of a memory anew, by a JSON merge patch (RFC 7396); one that is missing is created first.

    Raises InvalidPayload, IllegalState (disabled), PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    if unknown := unknown_names(memory_type, changes):
        raise InvalidPayload(
            f"the {memory_type} memory has no {', '.join(unknown)}: correct the spelling or leave it out",
            errors=[{"field": f"content.{name}", "reason": "is not a field here"} for name in unknown],
        )

    now = utc_now()

    def stated(profile: ask.Profile | None) -> tuple[Fact, JsonObject]:
        if profile is not None and profile.status != "active":
            raise IllegalState(f"the {memory_type} memory of {owner} is disabled: PUT it to use it again")
        before = _before(memory_type, profile)
        timed = stamped(memory_type, changes, before, now)
        merged = _checked(memory_type, merge_patch(before, timed))
        return ProfilePatched(owner=owner, memory_type=memory_type, patch=timed), merged

    return await _change(desk, owner, lineage, memory_type, stated, retry)


async def _change(
    desk: Desk,
    owner: str,
    lineage: Lineage,
    memory_type: MemoryType,
    stated: Callable[[ask.Profile | None], tuple[Fact, JsonObject]],
    retry: uuid.UUID | None,
) -> Memory:
    entity_id = profile_id(owner, memory_type)
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        profile, last = await _standing(desk, owner, memory_type)
        if retry is not None and profile is not None:
            kept = await desk.view.ask(events.kept_events, desk.org, [owner], [own_id])
            if own_id in kept:
                return Memory(filled(memory_type, profile.content), kept[own_id].position)
        fact, content = stated(profile)
        batch = [NewEvent(fact, entity_id, owner, desk.org, lineage, id=own_id, expects=last)]
        if profile is None:
            begins = ProfileCreated(owner=owner, memory_type=memory_type, content=default_content(memory_type))
            created = NewEvent(begins, entity_id, owner, desk.org, lineage, id=event_id(retry, "created"), expects=last)
            batch = [created, NewEvent(fact, entity_id, owner, desk.org, lineage, id=own_id)]
        try:
            done = await publish(desk.ledger, desk.tally, batch)
        except VersionConflict:
            continue
        return Memory(content, done[-1].position)
    raise VersionConflict(f"others keep writing to the {memory_type} memory of {owner}: try again")


async def _standing(desk: Desk, owner: str, memory_type: MemoryType) -> tuple[ask.Profile | None, int]:
    last = await desk.ledger.last_position_of(desk.org, "profile", profile_id(owner, memory_type))
    if desk.view.position < last:
        await desk.view.wait_for(last)
    found = await desk.view.ask(ask.profiles, desk.org, owner)
    return found.get(memory_type), last


async def disable(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: MemoryType,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Disabled:
    """Take a memory out of use. Raises UnknownProfile, IllegalState (disabled already), BrokerUnavailable."""
    owner = owner_of(caller)
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        profile, last = await _standing(desk, owner, memory_type)
        if profile is None:
            raise _no_memory(owner, memory_type)
        if retry is not None:
            kept = await desk.view.ask(events.kept_events, desk.org, [owner], [own_id])
            if own_id in kept:
                return Disabled(owner, memory_type, "disabled", kept[own_id].position, own_id)
        if profile.status != "active":
            raise IllegalState(f"the {memory_type} memory of {owner} is disabled already: PUT it to use it again")
        fact = ProfileDisabled(owner=owner, memory_type=memory_type, reason=reason)
        entity_id = profile_id(owner, memory_type)
        event = NewEvent(fact, entity_id, owner, desk.org, lineage, id=own_id, expects=last)
        try:
            (done,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return Disabled(owner, memory_type, "disabled", done.position, own_id)
    raise VersionConflict(f"others keep writing to the {memory_type} memory of {owner}: try again")


def _before(memory_type: MemoryType, profile: ask.Profile | None) -> JsonObject:
    """What the memory says before a change, complete."""
    return default_content(memory_type) if profile is None else filled(memory_type, profile.content)


def _checked(memory_type: MemoryType, content: JsonObject) -> JsonObject:
    try:
        return validated(memory_type, content)
    except ValidationError as error:
        raise refusal(
            error.errors(include_url=False, include_input=False), f"the content of the {memory_type} memory"
        ) from error
