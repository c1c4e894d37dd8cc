"""Answers about who may read an item, and about the types of scopes."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from kledger.answers.parts import Answered, KeptAt, Position, Time
from kledger.contract.scopes import Visibility
from kledger.contract.words import Permission


class Since(TypedDict):
    """The event since which a reason holds."""

    position: int
    version: int
    change: str
    event_id: str
    by: str
    time: Time


class Reason(TypedDict):
    """One reason for which the caller may read an item; `permission` is of an entry of its ACL."""

    kind: Literal["scope", "acl", "owner", "operator"]
    entity: str | None
    permission: NotRequired[Permission]
    since: Since


class MayChange(TypedDict):
    """Who may change an item, and in which part the caller is; `coordinators` of what a project shares."""

    owner: str
    writers: list[str]
    coordinators: list[str]
    you: Literal["owner", "coordinator", "writer", "operator"] | None


class Why(Answered):
    """Why the caller may read an item: each reason with the event `since` which it holds.

    `recalled`: lists and searches show it. What is retired, superseded, proposed or over is read by its id alone.
    `also` are entities that read it too and that the caller is not.
    """

    id: str
    visibility: Visibility
    because: list[Reason]
    recalled: bool
    also: list[str]
    may_change: MayChange
    position: Position


class ScopeType(TypedDict):
    """A type of scope; the higher its priority, the more specific. `position` of a built-in one is null."""

    type: str
    priority: float
    built_in: bool
    position: int | None


class ScopeTypes(Answered):
    """The types of scopes that may be used, the most specific first."""

    scope_types: list[ScopeType]
    position: Position


class RegisteredScopeType(TypedDict):
    """Where the registration of a type of scope is kept."""

    type: str
    priority: float
    position: KeptAt
    event_id: str
