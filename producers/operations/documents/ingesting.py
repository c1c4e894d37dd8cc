"""Ingest a document: read it, state it anew, save the chunks that are new, and retire those that it says no longer.

The document's event stands in the log before its chunks do, in one atomic batch with them where the batch holds them
all, and always with the end of the chunks that are gone. After a crash in the middle the document names chunks without
an item: ingesting the same again saves these, and nothing twice. So no chunk is ever without its document.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence

from kledger.answers.documents import IngestedDocument
from kledger.contract.errors import NotOwner, UnknownDocument, VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.documents import DocumentRequest
from ledger.event import Appended, Fact, Lineage, NewEvent, utc_now
from ledger.events.document import DocumentIngested
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised
from ledger.named_ids import named_id
from ledger.store.atomic_batch import MAX_MESSAGES
from producers.access.principal import require_addressable
from producers.documents.converting import Converted, convert
from producers.operations.admin.scope_types import require_types
from producers.operations.backpressure import Turns
from producers.operations.desk import Desk, first_entity, folded, reach_head
from producers.operations.documents.abstracting import ask_abstract
from producers.operations.documents.keeping import judge_original, keep_original, retire_original
from producers.operations.documents.original import Original, original_of
from producers.operations.documents.planning import Plan, Statement, plan, statements_of
from producers.operations.documents.repeating import repeated
from producers.operations.knowledge.holding import held_back
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import NAMESPACE, event_id, mismatch, publish_judged, refuse_unkeepable
from producers.operations.stated_before import earlier_event, possible_actors
from producers.operations.stating import default_owner, not_owner, signed
from projections.views.documents import ask

SAID_NO_LONGER = "the document says it no longer"


def unknown(document_id: str) -> UnknownDocument:
    """The error for a document that does not exist or is not visible to the caller; both read the same."""
    return UnknownDocument(
        f"there is no document {document_id[:200]!r} that you may see: check the id and as whom you ask",
        id=document_id,
    )


async def ingest(
    desk: Desk, caller: Caller, lineage: Lineage, payload: DocumentRequest, retry: uuid.UUID | None = None
) -> IngestedDocument:
    """Ingest a new document, or the next version of one; what it said before and says still is left as it is.

    Raises InvalidPayload, UnreadableDocument, RateLimited, IllegalScope, NotOwner, Forbidden, VersionConflict,
    PayloadTooLarge, SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    original = original_of(payload)
    document_id = payload.id or _fresh_id(retry)
    await _addressed(desk, caller, payload, document_id)
    async with desk.places.of(first_entity(caller)):
        converted = await convert(original.content, original.content_type)
    title = payload.title or (converted.title or document_id.rpartition("/")[2])[:200]
    said = statements_of(converted, title)
    own_id, lasts = event_id(retry), dict[str, int]()
    for attempt in range(ATTEMPTS):
        now, last, owner, scopes = await _addressed(desk, caller, payload, document_id)
        fact = _fact(payload, original, converted, title, owner, scopes)
        if retry is not None:
            actors = possible_actors(caller, owner)
            await _refuse_other(desk, actors, own_id, document_id, payload, fact, said)
            if (earlier := await repeated(desk, caller, actors, own_id, said, now)) is not None:
                return earlier
        known = {} if now is None else await desk.view.ask(ask.chunk_states, desk.org, now.chunks)
        url = payload.url or (None if now is None else now.stated["url"])
        fact = fact.model_copy(update={"url": url})
        parts = original.resources(document_id, title, owner, scopes)
        fact.resource_ids[:] = [part.id for part in parts]
        planned = plan(fact, said, now, known, f"{own_id} {attempt}")
        refuse_unkeepable(planned.fact)
        await judge_original(desk, caller, parts)
        await keep_original(desk, caller, lineage, parts)
        kept = [] if now is None or now.status != "active" else now.stated["resource_ids"]
        gone = [each for each in kept if each not in fact.resource_ids]
        await retire_original(desk, lineage, document_id, owner, gone, SAID_NO_LONGER)
        expects = {document_id: last, **{item_id: each.position for item_id, each in known.items()}, **lasts}
        try:
            appended, held = await _publish(desk, caller, lineage, document_id, planned, own_id, expects)
        except VersionConflict:
            # Somebody was faster, or an event that does not count is the last one of a chunk: the log says which.
            lasts = await last_of_chunks(desk, [*planned.gone, *planned.rescoped])
            continue
        if retry is not None and any(each.duplicate for each in appended):
            continue  # the same request was sent twice at once, and the other one is kept
        answer = _answer(document_id, planned, now, own_id, appended, held)
        await ask_abstract(desk, document_id, answer["event_id"], planned.fact, [each.content for each in said])
        return answer
    raise others_write_to(document_id)


async def _refuse_other(
    desk: Desk,
    actors: Collection[str],
    own_id: str,
    document_id: str,
    payload: DocumentRequest,
    fact: DocumentIngested,
    said: Sequence[Statement],
) -> None:
    """Raise IdempotencyMismatch where the key came before with another document, or with other words."""
    fields = fact.model_dump(mode="json", include={"title", "content_type", "headings", "characters"})
    fields["digests"] = " ".join(each.digest for each in said)
    fields |= {name: each for name, each in (("url", payload.url), ("scopes", payload.scopes)) if each is not None}
    before = await earlier_event(desk, actors, own_id, fields)
    if before is not None and before.entity_id != document_id:
        raise mismatch()


def _fresh_id(retry: uuid.UUID | None) -> str:
    seed = uuid.uuid4() if retry is None else uuid.uuid5(retry, "document")
    return f"document-{seed.hex[:16]}"


async def _addressed(
    desk: Desk, caller: Caller, payload: DocumentRequest, document_id: str
) -> tuple[ask.Standing | None, int, str, list[str]]:
    """The document as it is now with the last position of its history, its owner and its scopes.

    Raises NotOwner, Forbidden, IllegalScope, ViewBehind.
    """
    now, last = await document_now(desk, caller, document_id)
    if now is None:
        owner = payload.owner or default_owner(caller, None)
        if not caller.may_act_for(owner):
            raise not_owner(f"ingest a document owned by {owner}", owner, caller)
    else:
        owner = now.owner
        if not caller.may_act_for(owner):
            if now.readable:
                raise not_owner(f"ingest {document_id}, which {owner} owns", owner, caller)
            raise NotOwner(
                f"the id {document_id!r} is taken by somebody else's document: choose another", id=document_id
            )
        if payload.owner not in (None, owner):
            raise NotOwner(f"{document_id} is owned by {owner} and stays so: ingest it as {owner}", id=document_id)
    stands = None if now is None else now.stated["scopes"]
    scopes = list(dict.fromkeys(payload.scopes or stands or [owner]))
    require_addressable(caller, scopes, "what you ingest", stands or ())
    await require_types(desk, scopes)
    return now, last, owner, scopes


async def document_now(desk: Desk, caller: Caller, document_id: str) -> tuple[ask.Standing | None, int]:
    """The document, with its whole history and that of its chunks folded, and the last position of its own.

    The position comes first: a change that builds on it is refused where somebody changes the document after that.
    Raises ViewBehind.
    """
    if last := await folded(desk, "document", document_id):
        await reach_head(desk)
    return await desk.view.ask(ask.standing, desk.org, caller, document_id), last


async def last_of_chunks(desk: Desk, item_ids: Iterable[str]) -> dict[str, int]:
    """The last position of each of these items, once the view has it. Raises ViewBehind."""
    return {item_id: await folded(desk, "knowledge", item_id) for item_id in item_ids}


def _fact(
    payload: DocumentRequest, original: Original, converted: Converted, title: str, owner: str, scopes: list[str]
) -> DocumentIngested:
    """The event, but for its chunks and the resources of its original."""
    starts, number = [], 0
    for section in converted.sections:
        starts.append(number)
        number += len(section.chunks)
    return DocumentIngested(
        title=title,
        content_type=original.content_type,
        url=payload.url,
        summary=converted.summary,
        headings=[section.heading for section in converted.sections],
        levels=[section.level for section in converted.sections],
        starts=starts,
        summaries=[section.summary for section in converted.sections],
        chunks=[str(each) for each in range(number)],
        digests="",
        characters=converted.characters,
        scopes=scopes,
        owner=owner,
    )


async def _publish(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    document_id: str,
    planned: Plan,
    own_id: str,
    expects: Mapping[str, int],
) -> tuple[list[Appended], int]:
    """Append the plan, in as few atomic batches as it takes; the first has the document and the end of what is gone.

    With how many chunks are held, as they say what a person had retired or corrected. `expects` has the last position
    of the document and of each chunk that the plan builds on.
    """
    fact, moment = planned.fact, utc_now()
    caused = Lineage(lineage.trace_id, lineage.message_id, own_id, lineage.correlation_id, lineage.traceparent)
    # Without a reason: what a document says no longer may be said again, as nobody has given it up.
    gone, rescoped = KnowledgeRetired(), KnowledgeRevised(scopes=fact.scopes)

    def of_chunk(stated: Fact, item_id: str, expected: int) -> NewEvent:
        return NewEvent(
            stated, item_id, fact.owner, desk.org, caused, id=chunk_event_id(own_id, item_id), expects=expected
        )

    events = [of_chunk(gone, item_id, expects[item_id]) for item_id in planned.gone]
    events += [of_chunk(rescoped, item_id, expects[item_id]) for item_id in planned.rescoped]
    if planned.changed:
        document = NewEvent(fact, document_id, fact.owner, desk.org, lineage, id=own_id, expects=expects[document_id])
        events.append(document)
    saves = [of_chunk(signed(planned.saved(item_id), caller, moment), item_id, 0) for item_id in planned.missing]
    held = await held_back(desk, caller, {number: [save] for number, save in enumerate(saves)})
    for each in held.values():
        if each.error is not None:
            raise each.error
    events += [save for number, save in enumerate(saves) if number not in held]
    turns = Turns(desk.tally)
    for event in events:
        refuse_unkeepable(event.fact)
        await turns.when_due()
    appended: list[Appended] = []
    for start in range(0, len(events), MAX_MESSAGES):
        appended += await publish_judged(desk.ledger, desk.tally, events[start : start + MAX_MESSAGES])
        await turns.give_way()
    return appended, len(held)


def chunk_event_id(own_id: str, item_id: str) -> str:
    """The id of the event by which a request, whose own event has this id, changes one chunk: sent twice at once, it
    changes the chunk once."""
    return named_id(NAMESPACE, f"{own_id}\n{item_id}")


def _answer(
    document_id: str, planned: Plan, now: ask.Standing | None, own_id: str, appended: list[Appended], held: int
) -> IngestedDocument:
    fact, saved = planned.fact, len(planned.missing) - held
    before = now.chunks if now is not None and now.status == "active" else []
    return IngestedDocument(
        id=document_id,
        title=fact.title,
        position=max((each.position for each in appended), default=0 if now is None else now.position),
        version=(0 if now is None else now.version) + planned.changed,
        event_id=own_id if now is None or planned.changed else now.event_id,
        duplicate=not appended,
        sections=len(fact.headings),
        saved=saved,
        held=held,
        unchanged=len(fact.chunks) - saved - held,
        retired=len(set(before) - set(fact.chunks)),
    )
