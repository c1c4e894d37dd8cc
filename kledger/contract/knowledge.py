"""Value types of a knowledge item, shared by requests and events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.bounds import MAX_ID, SAYS_SOMETHING, UNSIGNED_ZERO, Urls
from kledger.contract.json_text import MOST_POSITION
from kledger.contract.part import Part
from kledger.contract.scope_fields import SeenEntity, SeenScope
from kledger.contract.words import Permission

Id = Annotated[str, Field(min_length=1, max_length=MAX_ID)]
KnowledgeType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Types = Annotated[list[KnowledgeType], Field(min_length=1, max_length=16)]
Scopes = Annotated[list[SeenScope], Field(min_length=1, max_length=64)]
Score = Annotated[int, Field(ge=1, le=5)]
Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Confidence = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]
Text = Annotated[str, Field(min_length=1), SAYS_SOMETHING]
Version = Annotated[int, Field(ge=1, le=MOST_POSITION)]
MOST_SHARED = 64
"""Entries of an ACL."""


class Source(Part):
    """Where the knowledge is from: a tool or paper, its urls, who queried, who submitted, and when."""

    name: str | None = None
    category: str | None = None
    urls: Urls = Field(default_factory=list)
    agent_id: str | None = None
    submitted_by: str | None = None
    timestamp: str | None = None
    trace_id: str | None = None
    message_id: str | None = None


class Case(Part):
    """One use of an item: what it was used for, with which outcome, in which trace."""

    task: str | None = None
    query: str | None = None
    outcome: str | None = None
    reason: str | None = None
    timestamp: str | None = None
    trace_id: str | None = None
    message_id: str | None = None


class AclEntry(Part):
    """Somebody who may read the item beside those in its scopes, and perhaps revise it."""

    entity: SeenEntity
    permission: Permission


def each_entity_once(acl: list[AclEntry]) -> list[AclEntry]:
    """Return an ACL without duplicate entities; for pydantic."""
    if len({entry.entity for entry in acl}) < len(acl):
        raise ValueError("names an entity twice: state each once, with its one permission")
    return acl
