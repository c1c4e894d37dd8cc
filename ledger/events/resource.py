"""Events of a resource: saved, retired, restored, its secret destroyed.

The entity id of these events is the resource's id, which is written like a path: `code/selenium/undetected_login`. Only
the owner publishes them. Knowledge refers to resources by `resource_ids`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, JsonValue

from kledger.contract.scopes import Entity
from ledger.event import MAX_ID, MOST_POSITION, Example, Fact, JsonObject
from ledger.events.bounds import Document, Reason
from ledger.events.examples import AUTHOR, MESSAGE, RESOURCE, TRACE
from ledger.events.knowledge import Origin, Scopes, Text
from ledger.seal_mark import MARK

TIMES = ("acquired_at", "expires_at")
"""The metadata fields that are times."""
# A value sealed with the resource's key (ledger/privacy/sealed.py), or the text shown once that key is destroyed.
SEALED_PATTERN = r"^(sealed:v1:.+:[A-Za-z0-9+/=]+|\[erased\])$"
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def fault_of_id(resource_id: str) -> str | None:
    """The fault of a resource's id; None when it is valid."""
    if not 1 <= len(resource_id) <= MAX_ID:
        return f"has {len(resource_id)} characters, 1 to {MAX_ID} are allowed"
    if not resource_id.isprintable():
        return "has a character that cannot be printed: leave it out"
    if resource_id.startswith(MARK):
        return f"begins with {MARK}, as a sealed value does: choose another id"
    for part in resource_id.split("/"):
        if not part.strip():
            return "has an empty segment: write it like code/selenium/login, without a slash at either end"
        if part in (".", ".."):
            return f"has the segment {part!r}, which means another place in a path: name it otherwise"
    return None


def moment_of(value: str) -> datetime:
    """Parse an RFC 3339 time. Raises ValueError."""
    if not _MOMENT.fullmatch(value):
        raise ValueError("is not an RFC 3339 time: write for example 2026-03-07T10:00:00Z")
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError("is no moment of the calendar: write for example 2026-03-07T10:00:00Z") from error


def times_or_value_error(metadata: JsonObject) -> JsonObject:
    """Return `metadata` if its TIMES are valid times; for pydantic, which collects ValueErrors with their field."""
    for name in TIMES:
        value = metadata.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ValueError(f"{name} is not a text: write for example 2026-03-07T10:00:00Z")
        try:
            moment_of(value)
        except ValueError as error:
            raise ValueError(f"{name} {error}") from error
    return metadata


ContentType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.+/-]{0,63}$")]
_TIMES_SCHEMA: dict[str, JsonValue] = {
    "properties": {name: {"type": ["string", "null"], "format": "date-time"} for name in TIMES}
}
Metadata = Annotated[Document, AfterValidator(times_or_value_error), Field(json_schema_extra=_TIMES_SCHEMA)]
SharedWith = Annotated[list[Entity], Field(max_length=64)]
Version = Annotated[int, Field(ge=1, le=MOST_POSITION)]


class ResourceFact(Fact):
    """Base class of events about a resource, whose id is written like a path."""

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
        """See `Fact.fault_of_id`."""
        return fault_of_id(entity_id)


class ResourceSaved(ResourceFact):
    """The owner states the whole resource: the first time a new one, later its next version.

    `secure_body` is sealed with a key of the resource's own; in clear it is refused.
    Version 2 has `origin`.
    """

    # A secret sent in clear must not appear in the text of an exception.
    model_config = ConfigDict(hide_input_in_errors=True)

    name: ClassVar[str] = "resource.saved"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("origin",)
    sealed_only: ClassVar[tuple[str, ...]] = ("secure_body",)
    personal: ClassVar[tuple[str, ...]] = ("title", "body", "metadata")
    example: ClassVar[Example] = Example(
        RESOURCE,
        AUTHOR,
        title="某网站测试账号",
        body="使用方法：直接登录即可，每天限额 100 次",
        secure_body=f"sealed:v1:resource:{RESOURCE}:q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=",
        content_type="credential",
        metadata={"acquired_at": "2026-03-06T10:00:00Z"},
        scopes=["project:ledger", AUTHOR],
        owner=AUTHOR,
        shared_with=["team:crawlers"],
        origin=Origin(trace_id=TRACE, message_id=MESSAGE),
    )

    title: Text
    body: str = ""
    secure_body: Annotated[str, Field(pattern=SEALED_PATTERN)] | None = None
    content_type: ContentType = "text"
    metadata: Metadata = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    shared_with: SharedWith = Field(default_factory=list)
    expected_version: Version | None = None
    origin: Annotated[Origin | None, Field(exclude_if=lambda value: value is None)] = None


class ResourceRetired(ResourceFact):
    """The owner takes the resource out of use; it stays readable, with its history."""

    name: ClassVar[str] = "resource.retired"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(RESOURCE, AUTHOR, reason="the account was closed")

    reason: Reason | None = None


class ResourceRestored(ResourceFact):
    """The owner brings a retired resource back."""

    name: ClassVar[str] = "resource.restored"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(RESOURCE, AUTHOR, reason="the account is open again")

    reason: Reason | None = None


class ResourceSecretDestroyed(ResourceFact):
    """The key of the resource was destroyed, on its owner's order: no version's secret can be read any more."""

    name: ClassVar[str] = "resource.secret_destroyed"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(RESOURCE, AUTHOR, reason="the password was seen")

    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (ResourceSaved, ResourceRetired, ResourceRestored, ResourceSecretDestroyed)
