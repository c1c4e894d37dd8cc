"""Events of a resource: saved, retired, restored, its secret destroyed.

The entity id of these events is the resource's id, which is written like a path: `code/selenium/undetected_login`. Only
the owner publishes them. Knowledge refers to resources by `resource_ids`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from kledger.contract.bounds import Reason
from kledger.contract.knowledge import Scopes, Text, Version
from kledger.contract.resource import ContentType, Metadata, SharedWith, fault_of_id
from kledger.contract.scope_fields import SeenEntity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, MESSAGE, RESOURCE, TRACE
from ledger.events.knowledge import Origin

# A value sealed with the resource's key (ledger/privacy/sealed.py), or the text shown once that key is destroyed.
SEALED_PATTERN = r"^(sealed:v1:.+:[A-Za-z0-9+/=]+|\[erased\])$"


class ResourceFact(Fact):
    """Base class of events about a resource, whose id is written like a path."""

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
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
    owner: SeenEntity
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
