"""Requests about documents: Markdown, text, HTML, PDF and Word, each of whose chunks is an item."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.wire import Wire, segment, without_none
from kledger.contract.words import DocumentFilter

if TYPE_CHECKING:
    from kledger.answers.documents import Document, DocumentList, IngestedDocument
    from kledger.answers.parts import Moved

DOCUMENTS = "/api/documents"


async def ingest(
    wire: Wire,
    id: str | None = None,
    *,
    text: str | None = None,
    file: str | Path | None = None,
    content: bytes | None = None,
    name: str | None = None,
    title: str | None = None,
    content_type: str | None = None,
    url: str | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    idempotency_key: str | None = None,
) -> IngestedDocument:
    """Ingest a document, whole: a `text`, a `file` of this machine, or `content` with the `name` of a file.

    With the id of one's own document it is the next version of that: what it says still is left as it is. NotOwner,
    InvalidPayload, UnreadableDocument (broken, or more than a node reads).
    """
    if file is not None:
        path = Path(file)
        content, name = await wire.connection.carrier.beside(path.read_bytes), name or path.name
    said = {
        "id": id,
        "title": title,
        "text": text,
        "content_type": content_type,
        "url": url,
        "scopes": scopes,
        "owner": owner,
    }
    body = without_none(**said)
    if content is not None:
        sent = {"content": base64.b64encode(content).decode("ascii")}
        body["file"] = sent if name is None else {"name": name, **sent}
    return await wire.write("POST", DOCUMENTS, body, idempotency_key=idempotency_key)


async def list_documents(
    wire: Wire, *, limit: int = 10, offset: int = 0, before: int | None = None, status: DocumentFilter = "active"
) -> DocumentList:
    """A page of the documents that the caller may see, newest first."""
    return await wire.read(DOCUMENTS, {"limit": limit, "offset": offset, "before": before, "status": status})


async def get(wire: Wire, id: str, *, limit: int = 100, offset: int = 0) -> Document:
    """One document with its sections, and a page of its chunks. UnknownDocument when there is none to see."""
    return await wire.read(f"{DOCUMENTS}/{segment(id)}", {"limit": limit, "offset": offset})


async def delete(wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None) -> Moved:
    """Remove a document with its chunks; the history stays. Only the owner may; IllegalState when it is removed."""
    return await wire.write(
        "DELETE", f"{DOCUMENTS}/{segment(id)}", params={"reason": reason}, idempotency_key=idempotency_key
    )


class DocumentEndpoints:
    """Documents, each of whose chunks is an item."""

    ingest = Endpoint(ingest)
    list = Endpoint(list_documents)
    get = Endpoint(get)
    delete = Endpoint(delete)
