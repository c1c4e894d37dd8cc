"""Request bodies of resources; typos are refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from kledger.contract.bounds import Document, Short
from kledger.contract.knowledge import Scopes, Text, Version
from kledger.contract.resource import ContentType, SharedWith, fault_of_id, times_in_capitals, times_or_value_error
from kledger.requests.body import Asked, without_fault
from kledger.requests.owners import Owner


def _each_once(named: list[ResourceRequest]) -> list[ResourceRequest]:
    if len({each.id for each in named}) < len(named):
        raise ValueError("names a resource twice: state each once")
    return named


ResourceId = Annotated[str, without_fault(fault_of_id)]


StatedMetadata = Annotated[Document, BeforeValidator(times_in_capitals), AfterValidator(times_or_value_error)]


class ResourceRequest(Asked):
    """A resource, whole: a new one, or the next version of the caller's own.

    The owner defaults to who asks, scopes to the owner, and the secret is shared with nobody else.
    """

    id: ResourceId
    title: Text
    body: str = ""
    secure_body: Annotated[Annotated[str, Field(min_length=1)] | None, Field(repr=False)] = None
    content_type: ContentType = "text"
    metadata: StatedMetadata = Field(default_factory=dict)
    scopes: Scopes | None = None
    owner: Owner | None = None
    shared_with: SharedWith = Field(default_factory=list)
    expected_version: Version | None = None
    trace_id: Short | None = None
    message_id: Short | None = None


MOST_TOGETHER = 12
"""Resources that are saved with one item: with its own events they fit one atomic batch, however large each is."""
Together = Annotated[list[ResourceRequest], Field(max_length=MOST_TOGETHER), AfterValidator(_each_once)]
