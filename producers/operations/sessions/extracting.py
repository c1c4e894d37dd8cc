"""Asking extraction about a session: at its close, every so many turns, when a context drops words that were not
offered yet, and where it is switched on when the scratchpad has one more task as completed; with the ids of the
messages since then.

The log gets the ids and not the words: the reactor reads those where they stand. Ids of the requests follow from the
session and the messages, so what is asked again, after a crash or by another node, is one request.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from kledger.contract.bounds import is_blank
from kledger.contract.errors import LedgerError
from kledger.contract.words import ExtractionKind
from ledger.event import JsonObject, Lineage
from ledger.events.extraction import ExtractionRequested
from ledger.named_ids import named_id
from ledger.sessions.context import Context
from ledger.sessions.head import Head
from ledger.sessions.subjects import SessionKey
from ledger.sessions.words import Message
from producers.operations.available_models import is_set
from producers.operations.desk import Desk
from producers.operations.reflection.asking import ask_once, reflects_on
from producers.operations.sessions.whose import store_of

log = structlog.get_logger(__name__)

SLICE = 100
"""Messages of one request, which is one prompt."""
MOST_ASKED = 1_000
"""So many of the last messages at most: of a conversation that was imported as a whole, its end."""
_SPEAK = ("user", "assistant")
_DROPPED = ("window", "level 2", "level 3", "budget")
"""Why words of a message are not in a context, where it is the context's doing."""
_NAMESPACE = uuid.UUID("5b1d0c56-8f0b-5c0e-8a7b-3a1c0d7e9f21")


def may_extract(desk: Desk) -> bool:
    """Whether sessions are offered to extraction, and a model is set for it."""
    return store_of(desk).settings.extract and is_set(desk.models, "extract")


def is_due(desk: Desk, head: Head) -> bool:
    """Whether the user has said so much since extraction was asked that it is asked again."""
    return head.turns - head.asked_turns >= store_of(desk).settings.turns and may_extract(desk)


def is_due_for_compaction(desk: Desk, head: Head, cut: Context) -> bool:
    """Whether a context is without the words of messages about which extraction was not asked.

    A segment of new messages at least: a small window drops words with each message.
    """
    dropped = max((group["last"] for group in cut.left_out if group["by"] in _DROPPED), default=0)
    new = head.count - head.asked
    return dropped > head.asked and new >= store_of(desk).settings.segment and may_extract(desk)


async def ask_when_due(desk: Desk, key: SessionKey) -> None:
    """Ask extraction for an open session, beside the request that made it due. Raises nothing of ours: what is not
    asked now is asked by the next append."""
    await _ask_beside(desk, key, lambda head: is_due(desk, head))


async def ask_when_compacted(desk: Desk, key: SessionKey, cut: Context) -> None:
    """Ask extraction for an open session, beside the context that drops words of it. Raises nothing of ours: what is
    not asked now is asked by the next context."""
    await _ask_beside(desk, key, lambda head: is_due_for_compaction(desk, head, cut))


def is_due_for_reflection(desk: Desk, before: JsonObject, after: JsonObject) -> bool:
    """Whether a scratchpad has a task as completed that it had not, and finished tasks are reflected on."""
    known, now = before.get("completed") or [], after.get("completed") or []
    return any(each not in known for each in now) and reflects_on(desk, "task") and may_extract(desk)


async def ask_when_finished(desk: Desk, key: SessionKey) -> None:
    """Ask extraction for what was said up to the end of a task, beside the note of it. Raises nothing of ours."""
    await _ask_beside(desk, key, lambda _head: True, "task")


async def _ask_beside(
    desk: Desk, key: SessionKey, due: Callable[[Head], bool], kind: ExtractionKind = "conversation"
) -> None:
    store = store_of(desk)
    try:
        async with store.turn(key):
            head = await store.head(key)
            if head is not None and head.state == "open" and due(head):
                await ask_extraction(desk, key, head, kind)
    except LedgerError as error:
        log.warning("extraction of a session is asked later", code=error.code)


async def ask_extraction(desk: Desk, key: SessionKey, head: Head, kind: ExtractionKind = "conversation") -> Head:
    """Ask for what was said since extraction was asked last; the head that knows of it.

    The caller holds the session's turn. What cannot be asked now is asked the next time: no append and no close fails
    for it.
    """
    store = store_of(desk)
    if head.asked >= head.count or not may_extract(desk):
        return head
    try:
        messages = await store.last(key, head, min(MOST_ASKED, head.count - head.asked))
        spoken = [each for each in messages if each.role in _SPEAK and not is_blank(each.content)]
        for at in range(0, len(spoken), SLICE):
            await _ask(desk, key, head, spoken[at : at + SLICE], kind)
        return await store.put_head(key, replace(head, asked=head.count, asked_turns=head.turns)) or head
    except LedgerError as error:
        log.warning("extraction of a session is asked later", code=error.code)
        return head


async def _ask(desk: Desk, key: SessionKey, head: Head, spoken: Sequence[Message], kind: ExtractionKind) -> None:
    ids = [each.id for each in spoken]
    fact = ExtractionRequested(
        kind=kind,
        messages=[{"id": each, "session": key.session_id} for each in ids],
        owner=key.owner,
        scopes=[key.owner],
        agent_id=head.agent,
    )
    own_id = named_id(_NAMESPACE, "\n".join((key.name, str(head.opened), ids[0], ids[-1])))
    traces = {each.trace_id for each in spoken}  # of several, what is found in a message names that message's
    lineage = Lineage(trace_id=traces.pop() if len(traces) == 1 else None, message_id=ids[-1])
    await ask_once(desk, fact, key.owner, lineage, own_id)
