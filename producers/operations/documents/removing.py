"""Remove a document: its chunks are retired with it, in one atomic batch, and then its original."""

from __future__ import annotations

import uuid

from kledger.answers.parts import Moved
from kledger.contract.errors import IllegalState, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent
from ledger.events.document import DocumentRemoved
from ledger.events.knowledge import KnowledgeRetired
from ledger.store.atomic_batch import MAX_MESSAGES
from producers.operations.desk import Desk
from producers.operations.documents.ingesting import chunk_event_id, document_now, last_of_chunks, unknown
from producers.operations.documents.keeping import retire_original
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import event_id, publish_judged, refuse_unkeepable
from producers.operations.stated_before import earlier_event, request_fields
from producers.operations.stating import not_owner
from projections.views.documents import ask

WITH_ITS_DOCUMENT = "its document was removed"


async def remove(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    document_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Moved:
    """Remove a document.

    Raises UnknownDocument, NotOwner, IllegalState, VersionConflict, BrokerUnavailable, ViewBehind.
    """
    own_id, fact, lasts = event_id(retry), DocumentRemoved(reason=reason), dict[str, int]()
    refuse_unkeepable(fact)
    for _ in range(ATTEMPTS):
        now, last = await document_now(desk, caller, document_id)
        if now is None or not (now.readable or caller.may_act_for(now.owner)):
            raise unknown(document_id)
        if not caller.may_act_for(now.owner):
            raise not_owner(f"remove {document_id}, which {now.owner} owns", now.owner, caller)
        if (before := await earlier_event(desk, [now.owner], own_id, request_fields(fact))) is not None:
            return Moved(id=document_id, position=before.position, event_id=own_id)
        if now.status != "active":
            raise IllegalState(
                f"{document_id} is removed already: ingest it to have it back", id=document_id, status=now.status
            )
        known = await desk.view.ask(ask.chunk_states, desk.org, now.chunks)
        retired, caused = KnowledgeRetired(), Lineage(causation_id=own_id)
        gone = {
            item_id: lasts.get(item_id, chunk.position)
            for item_id, chunk in known.items()
            if chunk.owner == now.owner and chunk.status in KnowledgeRetired.taken_in
        }
        events = [NewEvent(fact, document_id, now.owner, desk.org, lineage, id=own_id, expects=last)]
        events += [
            NewEvent(
                retired, item_id, now.owner, desk.org, caused, id=chunk_event_id(own_id, item_id), expects=expected
            )
            for item_id, expected in gone.items()
        ]
        assert len(events) <= MAX_MESSAGES  # a document has fewer chunks than a batch has events
        try:
            appended = await publish_judged(desk.ledger, desk.tally, events)
        except VersionConflict:
            lasts = await last_of_chunks(desk, gone)
            continue
        kept = now.stated["resource_ids"]
        await retire_original(desk, lineage, document_id, now.owner, kept, WITH_ITS_DOCUMENT)
        return Moved(id=document_id, position=appended[0].position, event_id=own_id)
    raise others_write_to(document_id)
