"""Asking for an abstract of a document, beside the request that ingested it.

The id of a request follows from the version of the document and from what is asked for: the same ingestion, sent again,
asks a model once. What failed is asked for again by a later ingestion, a few times.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import structlog

from kledger.contract.errors import LedgerError, VersionConflict
from ledger.event import NewEvent
from ledger.events.document import DocumentIngested
from ledger.events.summary import AbstractRequested
from ledger.named_ids import named_id
from producers.operations.desk import Desk
from producers.operations.publish import publish
from producers.operations.sessions.summarising import AGAIN_US, MOST_TRIES, may_summarise
from producers.operations.sessions.whose import now_us
from projections.views.documents.abstracts import NOTHING, abstracts_of, digests_of, lacking
from projections.views.processes import ask as processes

log = structlog.get_logger(__name__)

_NAMESPACE = uuid.UUID("5e7c1d0a-93c4-5a0b-8f27-6b1f1f4d2c57")


async def ask_abstract(
    desk: Desk, document_id: str, version: str, fact: DocumentIngested, chunks: Sequence[str]
) -> None:
    """Ask for what a model has not summed up of a version, which says these chunks. Raises nothing of ours."""
    if not may_summarise(desk):
        return
    whole, digests = digests_of(fact.digests, fact.starts)
    ends = [*fact.starts[1:], len(chunks)]
    sections = [
        (digest, "\n\n".join(chunks[start:end])) for digest, start, end in zip(digests, fact.starts, ends, strict=True)
    ]
    try:
        said = await desk.view.ask(abstracts_of, desk.org, {document_id: fact.owner})
        numbers = lacking(said.get(document_id, NOTHING), whole, sections)
        if numbers is not None:
            await _ask(desk, document_id, fact.owner, [document_id, version, *(digests[each] for each in numbers)])
    except LedgerError as error:
        log.warning("an abstract is asked for by a later ingestion", code=error.code)


async def _ask(desk: Desk, document_id: str, owner: str, about: Sequence[str]) -> None:
    for attempt in range(MOST_TRIES):
        own_id = named_id(_NAMESPACE, "\n".join((desk.org, owner, *about, str(attempt))))
        name = f"abstract-{uuid.UUID(own_id).hex[:16]}"
        process = await desk.view.ask(processes.process, desk.org, "abstract", name)
        if process is not None:
            if process.stage == "failed" and now_us() - process.updated_us > AGAIN_US:
                continue
            return
        event = NewEvent(AbstractRequested(document=document_id), name, owner, desk.org, id=own_id, expects=0)
        try:
            await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            log.debug("an abstract was asked for before", abstract=name)
        return
