"""Events of a user's two memories, `user` and `work`.

The entity id is `{owner}/{memory_type}`, for example `user:123/work`. Only the owner publishes these.
"""

from __future__ import annotations

import uuid
from typing import ClassVar

from kledger.contract.bounds import Document, Reason
from kledger.contract.scope_fields import Entity, SeenEntity
from kledger.contract.words import ProfileType
from ledger.event import Example, Fact
from ledger.events.examples import USER


def profile_id(owner: str, memory_type: ProfileType) -> str:
    """The entity id of one memory of one user."""
    return f"{owner}/{memory_type}"


MEMORIES = uuid.UUID("9b0c2f57-3a5c-5c0e-9d0e-0c6ed7a2f0b1")
"""The namespace of the ids of memories (RFC 9562, version 5)."""


def memory_id(org: str, owner: str, memory_type: ProfileType) -> uuid.UUID:
    """The id of one memory: the same in every answer, view and node. The view `profiles` computes it in SQL."""
    return uuid.uuid5(MEMORIES, f"{org}\n{profile_id(owner, memory_type)}")


EXAMPLE_CONTENT = {"preferences": [{"key": "language", "value": "中文", "meta": {"confidence": 0.9}}]}


class ProfileFact(Fact):
    """Base class of events about a memory: its owner, and which of the two it is."""

    owner: Entity
    memory_type: ProfileType

    def stated_id(self) -> str:
        """The entity id in the data, which the subject has to match."""
        return profile_id(self.owner, self.memory_type)


class ProfileCreated(ProfileFact):
    """A memory begins, with its default content."""

    name: ClassVar[str] = "profile.created"
    personal: ClassVar[tuple[str, ...]] = ("content",)
    example: ClassVar[Example] = Example(profile_id(USER, "user"), USER, owner=USER, memory_type="user", content={})

    owner: SeenEntity
    content: Document


class ProfileReplaced(ProfileFact):
    """The whole content is stated anew; a disabled memory is active again."""

    name: ClassVar[str] = "profile.replaced"
    personal: ClassVar[tuple[str, ...]] = ("content",)
    example: ClassVar[Example] = Example(
        profile_id(USER, "user"), USER, owner=USER, memory_type="user", content=EXAMPLE_CONTENT
    )

    owner: SeenEntity
    content: Document


class ProfilePatched(ProfileFact):
    """Part of the content is stated anew: a JSON merge patch (RFC 7396), null removes a field."""

    name: ClassVar[str] = "profile.patched"
    personal: ClassVar[tuple[str, ...]] = ("patch",)
    example: ClassVar[Example] = Example(
        profile_id(USER, "user"), USER, owner=USER, memory_type="user", patch={"places": []}
    )

    owner: SeenEntity
    patch: Document


class ProfileDisabled(ProfileFact):
    """The memory is not to be used any more; its content and history stay."""

    name: ClassVar[str] = "profile.disabled"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(
        profile_id(USER, "user"), USER, owner=USER, memory_type="user", reason="on request"
    )

    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (ProfileCreated, ProfileReplaced, ProfilePatched, ProfileDisabled)
