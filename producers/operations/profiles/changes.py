"""Changes of a user's memories: register, replace, patch, disable.

Both memories of a user are created together. A change is one event; the first one is appended in one atomic batch with
the two creations, so that version 1 of a memory is its default content, whoever changes it first.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from pydantic import ValidationError

from kledger.answers.profiles import DisabledProfile
from kledger.contract.errors import IllegalState, InvalidPayload, VersionConflict
from kledger.contract.scopes import Caller
from kledger.contract.words import ProfileType
from ledger.event import JsonObject, Lineage, NewEvent, utc_now
from ledger.events.profile import (
    ProfileCreated,
    ProfileDisabled,
    ProfileFact,
    ProfilePatched,
    ProfileReplaced,
    memory_id,
    profile_id,
)
from producers.operations import stated_before
from producers.operations.desk import Desk
from producers.operations.outcomes import ATTEMPTS
from producers.operations.profiles.reading import MEMORY_TYPES, Memories, Memory, both, owner_of
from producers.operations.publish import event_id, mismatch, publish
from producers.requests.reading import fields_in, in_details, refusal, some_of
from projections.views.profiles import ask
from projections.views.profiles.content import CONTENTS, default_content, filled, unknown_names, validated
from projections.views.profiles.merge_patch import merge_patch
from projections.views.profiles.stamping import says_the_same, stamped

_changing: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()


async def register(desk: Desk, caller: Caller, lineage: Lineage) -> Memories:
    """Create the missing memories of the user with default content; idempotent.

    Raises InvalidPayload (no user named), BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    standing = await _standing(desk, owner)
    if creations := _creations(desk, owner, lineage, standing):
        try:
            position = (await publish(desk.ledger, desk.tally, creations))[-1].position
        except VersionConflict:  # somebody registered the same user in between
            position = (await desk.ledger.head()).position
        await desk.view.wait_for(position)
    return await both(desk, caller)


async def register_new(desk: Desk, caller: Caller, lineage: Lineage) -> None:
    """Create both memories of a user who never had any in the log; forgotten ones are not created again.

    Raises VersionConflict (somebody else was first), BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    standing = await _standing(desk, owner)
    if not any(standing.lasts.values()):
        await publish(desk.ledger, desk.tally, _creations(desk, owner, lineage, standing))


async def replace(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: ProfileType,
    content: JsonObject,
    retry: uuid.UUID | None = None,
) -> Memory:
    """Replace a memory; a missing one is created, a disabled one becomes active again.

    Raises InvalidPayload, PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    now = utc_now()

    def build(profile: ask.Profile | None) -> tuple[ProfileFact, JsonObject]:
        whole = _checked(memory_type, stamped(memory_type, content, _before(memory_type, profile), now))
        return ProfileReplaced(owner=owner, memory_type=memory_type, content=whole), whole

    return await _change(desk, owner, lineage, memory_type, build, {"content": content}, event_id(retry), retry)


async def patch(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: ProfileType,
    changes: JsonObject,
    retry: uuid.UUID | None = None,
) -> Memory:
    """Patch a memory with a JSON merge patch (RFC 7396); a missing one is created first.

    Raises InvalidPayload, IllegalState (disabled), PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    owner = owner_of(caller)
    if unknown := unknown_names(memory_type, changes):
        known = ", ".join(dict.fromkeys(itertools.chain(*unknown.values())))
        raise InvalidPayload(
            f"the {memory_type} memory has no {some_of(list(unknown))}: there are {known}",
            **in_details(
                [{"field": f"content.{name}", "reason": "is not a field here"} for name in unknown], len(unknown)
            ),
        )

    now = utc_now()

    def build(profile: ask.Profile | None) -> tuple[ProfileFact, JsonObject]:
        if profile is not None and profile.status != "active":
            raise IllegalState(f"the {memory_type} memory of {owner} is disabled: PUT it to use it again")
        before = _before(memory_type, profile)
        timed = stamped(memory_type, changes, before, now)
        merged = _checked(memory_type, merge_patch(before, timed))
        return ProfilePatched(owner=owner, memory_type=memory_type, patch=timed), merged

    return await _change(desk, owner, lineage, memory_type, build, {"patch": changes}, event_id(retry), retry)


async def _change(
    desk: Desk,
    owner: str,
    lineage: Lineage,
    memory_type: ProfileType,
    build: Callable[[ask.Profile | None], tuple[ProfileFact, JsonObject]],
    fields: JsonObject,
    own_id: str,
    retry: uuid.UUID | None,
) -> Memory:
    """Append the event that `build` makes; a retry, whose event states the same `fields`, appends nothing.

    What one node is asked at once comes one after the other: each would have to be tried anew after all others.
    """
    async with _turn_of(desk, owner):
        for _ in range(ATTEMPTS):
            standing = await _standing(desk, owner)
            profile = standing.found.get(memory_type)
            if retry is not None and profile is not None:
                before = await stated_before.earlier_event(desk, [owner], own_id, {})
                if before is not None:
                    erased = any(before.erases(name) for name in fields)  # an erased event cannot be compared
                    if not erased and not says_the_same(memory_type, fields, before.data):
                        raise mismatch()
                    return Memory(filled(memory_type, profile.content), before.position)
            fact, content = build(profile)
            try:
                appended = await publish(
                    desk.ledger, desk.tally, _with_beginnings(desk, fact, own_id, lineage, standing, retry)
                )
            except VersionConflict:
                continue
            return Memory(content, appended[-1].position)
    raise VersionConflict(f"others keep writing to the {memory_type} memory of {owner}: try again")


def _turn_of(desk: Desk, owner: str) -> asyncio.Lock:
    """The lock that a change of this user's memories holds, on this node: the first one creates both."""
    return _changing.setdefault((desk.org, owner), asyncio.Lock())


@dataclass(frozen=True, slots=True)
class _Standing:
    """The memories of a user in the log, and the last position of each, 0 for a missing one."""

    found: dict[str, ask.Profile]
    lasts: dict[ProfileType, int]


async def _standing(desk: Desk, owner: str) -> _Standing:
    lasts = {
        memory_type: await desk.ledger.last_position_of(desk.org, "profile", profile_id(owner, memory_type))
        for memory_type in MEMORY_TYPES
    }
    if desk.view.position < max(lasts.values()):
        await desk.view.wait_for(max(lasts.values()))
    return _Standing(await desk.view.ask(ask.profiles, desk.org, owner), lasts)


def _creations(
    desk: Desk, owner: str, lineage: Lineage, standing: _Standing, retry: uuid.UUID | None = None
) -> list[NewEvent]:
    """The creation events of the memories that are not in the log."""
    return [
        NewEvent(
            ProfileCreated(owner=owner, memory_type=memory_type, content=default_content(memory_type)),
            profile_id(owner, memory_type),
            owner,
            desk.org,
            lineage,
            id=event_id(retry, f"created {memory_type}"),
            expects=standing.lasts[memory_type],
        )
        for memory_type in MEMORY_TYPES
        if memory_type not in standing.found
    ]


def _with_beginnings(
    desk: Desk, fact: ProfileFact, own_id: str, lineage: Lineage, standing: _Standing, retry: uuid.UUID | None
) -> list[NewEvent]:
    """The events of one change, to be appended in one atomic batch."""
    creations = _creations(desk, fact.owner, lineage, standing, retry)
    # A memory that is created in this batch has no position to expect yet.
    expects = standing.lasts[fact.memory_type] if fact.memory_type in standing.found else None
    return [
        *creations,
        NewEvent(fact, fact.stated_id(), fact.owner, desk.org, lineage, id=own_id, expects=expects),
    ]


async def disable(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    memory_type: ProfileType,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> DisabledProfile:
    """Disable a memory. Raises IllegalState (disabled already), BrokerUnavailable."""
    owner = owner_of(caller)

    def build(profile: ask.Profile | None) -> tuple[ProfileFact, JsonObject]:
        if profile is not None and profile.status != "active":
            raise IllegalState(f"the {memory_type} memory of {owner} is disabled already: PUT it to use it again")
        return ProfileDisabled(owner=owner, memory_type=memory_type, reason=reason), {}

    own_id = event_id(retry)
    done = await _change(desk, owner, lineage, memory_type, build, {"reason": reason}, own_id, retry)
    return DisabledProfile(
        id=str(memory_id(desk.org, owner, memory_type)),
        owner=owner,
        memory_type=memory_type,
        status="disabled",
        position=done.position,
        event_id=own_id,
    )


def _before(memory_type: ProfileType, profile: ask.Profile | None) -> JsonObject:
    """The complete content of the memory before a change."""
    return default_content(memory_type) if profile is None else filled(memory_type, profile.content)


def _checked(memory_type: ProfileType, content: JsonObject) -> JsonObject:
    try:
        return validated(memory_type, content)
    except ValidationError as error:
        raise refusal(
            error.errors(include_url=False, include_input=False),
            f"the content of the {memory_type} memory",
            fields_in(CONTENTS[memory_type]),
        ) from error
