"""Reads of documents: the list, one with its chunks, and what stands around a chunk."""

from __future__ import annotations

from kledger.contract.errors import Erased
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from producers.operations.desk import ANY, Desk, Freshness, reach
from producers.operations.documents.ingesting import unknown
from producers.operations.outcomes import listed
from projections.fold_kit.page import Window
from projections.views.documents import ask


async def list_documents(
    desk: Desk, caller: Caller, window: Window, *, status: str = "active", freshness: Freshness = ANY
) -> JsonObject:
    """The documents visible to the caller, newest first. Raises ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    return listed(await desk.view.ask(ask.documents, desk.org, caller, window, status=status), position)


async def get(
    desk: Desk, caller: Caller, document_id: str, *, limit: int = 100, offset: int = 0, freshness: Freshness = ANY
) -> JsonObject:
    """One document with its sections, and a page of its chunks. Raises UnknownDocument, Erased, ViewBehind."""
    await reach(desk, freshness)
    document = await desk.view.ask(ask.document, desk.org, caller, document_id, limit, offset)
    if document is None:
        raise unknown(document_id)
    if ask.erased_title(document) and await desk.view.ask(ask.is_erased, desk.org, document_id):
        raise Erased(f"what {document_id} said was erased with the person it belonged to", id=document_id)
    return document
