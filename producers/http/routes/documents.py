"""The routes of documents. An id reads like a path, and is part of one: raw slashes and %2F both do."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.documents import Document, DocumentList, IngestedDocument
from kledger.answers.parts import Moved
from kledger.contract.words import DocumentFilter
from kledger.requests.documents import DocumentRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.forms import FORM, FormRoute
from producers.http.parameters import Before, DocumentId, Fresh, From, Limit, Offset, Reason, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.documents import ingesting, reading, removing
from projections.fold_kit.page import Window

BASE = "/api/documents"
ONE = BASE + "/{document_id:path}"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router, files = new_router("documents"), new_router("documents", route_class=FormRoute)

    @files.post(
        BASE,
        status_code=201,
        responses=documented(IngestedDocument, 400, 403, 409, 413, status=201),
        openapi_extra=FORM,
    )
    async def ingest_document(caller: Who, lineage: From, retry: Retry, body: DocumentRequest) -> Json:
        """Read a text or file, and keep what is new of it: each of its chunks is an item.

        Markdown, text, HTML, PDF and Word (.docx); as JSON, or as multipart/form-data with a `file`.
        """
        return Json(await ingesting.ingest(desk, caller, lineage, body, retry), 201)

    @router.get(BASE, responses=documented(DocumentList))
    async def list_documents(
        caller: Who,
        fresh: Fresh,
        limit: Limit = 10,
        offset: Offset = 0,
        before: Before = None,
        status: DocumentFilter = "active",
    ) -> Json:
        """The documents that the caller may see, newest first."""
        page = await reading.list_documents(desk, caller, Window(limit, offset, before), status=status, freshness=fresh)
        return ReadJson(page, fresh)

    @router.get(ONE, responses=documented(Document, 404, 410))
    async def get_document(
        caller: Who,
        document_id: DocumentId,
        fresh: Fresh,
        limit: Annotated[int, Query(ge=1, le=1_000, description="Of its chunks")] = 100,
        offset: Offset = 0,
    ) -> Json:
        """One document: its sections, and its chunks in their order."""
        return ReadJson(
            await reading.get(desk, caller, document_id, limit=limit, offset=offset, freshness=fresh), fresh
        )

    @router.delete(ONE, responses=documented(Moved, 403, 404, 409))
    async def remove_document(
        caller: Who, lineage: From, retry: Retry, document_id: DocumentId, reason: Reason = None
    ) -> Json:
        """Remove a document: its chunks are retired with it; its history stays."""
        return Json(await removing.remove(desk, caller, lineage, document_id, reason, retry))

    return [router, files]
