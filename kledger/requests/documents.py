"""Request bodies of documents; typos are refused."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from kledger.contract.bounds import Short
from kledger.contract.documents import MOST_FILE, Title, Url, fault_of_id
from kledger.contract.knowledge import Scopes, Text
from kledger.requests.body import Asked, without_fault
from kledger.requests.owners import Owner

DocumentId = Annotated[str, without_fault(fault_of_id)]


class SentFile(Asked):
    """A file: its name, whose end says what it is, and its bytes in base64."""

    name: Short | None = None
    content: Annotated[str, Field(min_length=1, max_length=4 * MOST_FILE // 3 + 4, repr=False)]


class DocumentRequest(Asked):
    """A document, whole: a new one, or the next version of the caller's own. It is a `text` or a `file`.

    The owner defaults to who asks, scopes to those it has already, or to the owner; `url` says where it is from, and is
    not fetched. Without an `id` it gets a new one.
    """

    id: DocumentId | None = None
    title: Title | None = None
    text: Text | None = None
    file: SentFile | None = None
    content_type: Short | None = None
    url: Url | None = None
    scopes: Scopes | None = None
    owner: Owner | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.text is None) == (self.file is None):
            both = "both `text` and `file`" if self.text is not None else "neither `text` nor `file`"
            raise ValueError(f"states {both}: give one of the two")
        return self
