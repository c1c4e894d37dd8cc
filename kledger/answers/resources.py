"""Answers about resources: in lists and alone, and their versions."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Count, Earlier, JsonDocument, Position, Time, Total
from kledger.contract.scopes import Visibility
from kledger.contract.words import ResourceStatus, SecretState


class ListedResource(TypedDict):
    """A resource as lists give it; `valid` is what is active and has not expired."""

    id: str
    title: str
    body: str
    has_secure: bool
    content_type: str
    metadata: JsonDocument
    expired: bool
    valid: bool
    scopes: list[str]
    owner: str
    visibility: Visibility
    shared_with: list[str]
    version: int
    position: int
    created_at: Time
    updated_at: Time
    status: ResourceStatus


class Resource(ListedResource, Answered):
    """One resource; `secure` says why its `secure_body` is there or not."""

    secure_body: str | None
    secure: SecretState


class ResourceList(Answered):
    """A page of resources, as of items."""

    results: list[ListedResource]
    count: Count
    total: Total
    next: int | None
    position: Position


class ResourceVersion(TypedDict):
    """One version of a resource, without its secret: it holds from `valid_from` up to `valid_to`, null for the last."""

    version: int
    change: Literal["saved", "retired", "restored", "secret_destroyed"]
    title: str
    body: str
    has_secure: bool
    content_type: str
    metadata: JsonDocument
    scopes: list[str]
    owner: str
    shared_with: list[str]
    status: ResourceStatus
    valid_from: int
    valid_to: int | None
    valid_from_time: Time
    valid_to_time: Time | None
    actor: str
    trace_id: str | None
    message_id: str | None
    event_id: str


class ResourceHistory(Answered):
    """Every version of a resource, oldest first, without its secret; the latest where all do not fit."""

    id: str
    versions: list[ResourceVersion]
    next: NotRequired[Earlier]
    position: Position
