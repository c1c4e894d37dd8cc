"""What does HTTP answer of resources? Their shapes, in lists and alone (mission X1)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from kledger.contract.scopes import Visibility
from ledger.event import JsonObject
from producers.http.answers.knowledge import ReadAnswer
from producers.operations.resources.reading import Secure


class ListedResourceAnswer(BaseModel):
    """A resource as lists tell it; `valid` is what is active and has not expired."""

    id: str
    title: str
    body: str
    has_secure: bool
    content_type: str
    metadata: JsonObject
    expired: bool
    valid: bool
    scopes: list[str]
    owner: str
    visibility: Visibility
    shared_with: list[str]
    version: int
    position: int
    created_at: str
    updated_at: str
    status: Literal["active", "retired"]


class ResourceAnswer(ListedResourceAnswer, ReadAnswer):
    """`secure` says why `secure_body` is what it is."""

    secure_body: str | None
    secure: Secure


class ResourcesAnswer(ReadAnswer):
    results: list[ListedResourceAnswer]
    count: int
    total: int
    next: int | None
    position: int


class ResourceHistoryAnswer(ReadAnswer):
    id: str
    versions: list[JsonObject]
    position: int
