"""Reading sessions: the list of them, their messages in order, and the words behind an id."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

from kledger.contract.errors import UnknownSession
from kledger.contract.scopes import Caller
from kledger.contract.sessions import MOST_MESSAGES
from kledger.contract.words import SessionFilter, SessionStatus
from ledger import one_answer
from ledger.event import JsonObject
from ledger.sessions.head import Head
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.summaries import in_order
from ledger.sessions.words import Message
from producers.operations.desk import ANY, Desk, Freshness, reach
from producers.operations.sessions.whose import found, owners_of, store_of
from projections.views.sessions import ask
from projections.views.sessions.ask import Session
from projections.views.times import rfc3339

MOST_NAMED = 10
"""Sessions that have a message with one id, in one answer."""
_AT_ONCE = 8
"""Messages that are read at once."""


async def messages(
    desk: Desk,
    caller: Caller,
    session_id: str,
    *,
    after: str | None = None,
    limit: int = 100,
    owner: str | None = None,
) -> JsonObject:
    """Messages in order, after the one with the id `after` (MessageList). Raises UnknownSession, BrokerUnavailable."""
    session = await found(desk, caller, session_id, owner)
    store = store_of(desk)
    position = 0
    if after is not None:
        at = await store.position_of(session.key, after)
        if at is None:
            raise no_message(session_id, after)
        position = at
    page = await store.page(session.key, position, limit)
    # More may have come since the head was read.
    ends = not page or page[-1].number >= session.head.count
    shown = [message.shown() for message in page]
    following = None if ends else page[-1].id
    total = session.head.count
    return {"session_id": session_id, "messages": shown, "count": len(shown), "total": total, "next": following}


async def expand(
    desk: Desk, caller: Caller, session_id: str, record_id: str, *, owner: str | None = None
) -> JsonObject:
    """The words of a message, or of those that a summary stands for: the first 1,000, as many as fit into an answer
    (Expanded).

    Raises UnknownSession, BrokerUnavailable.
    """
    session = await found(desk, caller, session_id, owner)
    store = store_of(desk)
    message = await store.message(session.key, record_id)
    if message is not None:
        return _expanded(session_id, record_id, [message])
    summary = await store.summary(session.key, record_id, session.head)
    if summary is None:
        raise no_message(session_id, record_id)
    if summary.level == 2:
        summed = await _as_many_as_fit(store, session.key, summary.messages)
    else:  # an overview stands for everything from the first message on
        summed = await store.page(session.key, 0, min(summary.last_number, MOST_MESSAGES))
    return _expanded(session_id, record_id, summed, goes_on=bool(summed) and summed[-1].number < summary.last_number)


async def _as_many_as_fit(store: SessionStore, key: SessionKey, ids: Sequence[str]) -> list[Message]:
    """Messages of a session by their ids, the first of them until they have as many bytes as an answer may have."""
    found: list[Message] = []
    size = 0
    for begin in range(0, len(ids), _AT_ONCE):
        for message in await asyncio.gather(*(store.message(key, each) for each in ids[begin : begin + _AT_ONCE])):
            size += 0 if message is None else one_answer.size_of(message.shown())
            if size > one_answer.MOST_BYTES and len(found) >= one_answer.LEAST:
                return found
            found += [] if message is None else [message]
    return found


async def named(desk: Desk, caller: Caller, message_id: str, *, owner: str | None = None) -> JsonObject:
    """The message of an id with its session; of several sessions of the caller each (SaidMessages).

    Raises BrokerUnavailable.
    """
    store = store_of(desk)
    owners = [None] if caller.is_operator and owner is None else owners_of(caller, owner)
    found = await asyncio.gather(*(store.named(desk.org, each, message_id, MOST_NAMED) for each in owners))
    results = [
        {"session_id": key.session_id, "owner": key.owner, "message": message.shown()}
        for several in found
        for key, message in several
    ]
    return {"id": message_id, "results": results[:MOST_NAMED]}


async def summaries(desk: Desk, caller: Caller, session_id: str, *, owner: str | None = None) -> JsonObject:
    """What was summed up of a session (SessionSummaries). Raises UnknownSession, BrokerUnavailable."""
    session = await found(desk, caller, session_id, owner)
    segments, overview = in_order(await store_of(desk).summaries(session.key, session.head))
    shown = one_answer.last_fitting([each.shown() for each in segments])
    return {
        "session_id": session_id,
        "summaries": shown,
        **({"more": True} if len(shown) < len(segments) else {}),
        "overview": None if overview is None else overview.shown(),
    }


def _expanded(session_id: str, record_id: str, messages: Sequence[Message], *, goes_on: bool = False) -> JsonObject:
    following = {"after": messages[-1].id} if goes_on else {}
    return {"session_id": session_id, "id": record_id, "messages": [each.shown() for each in messages], **following}


async def listed(
    desk: Desk,
    caller: Caller,
    *,
    status: SessionFilter | None = None,
    owner: str | None = None,
    limit: int = 20,
    offset: int = 0,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The caller's sessions, the one that changed last first; without a status those that have words.

    The operator's are those of all, unless an `owner` is named.
    Raises ViewBehind, BrokerUnavailable.
    """
    await reach(desk, freshness)
    position = desk.view.position
    statuses: tuple[str, ...] = ("open", "closed") if status is None else (status,)
    if status == "all":
        statuses = get_args(SessionStatus)
    owners = None if caller.is_operator and owner is None else owners_of(caller, owner)
    rows, total = await desk.view.ask(ask.sessions, desk.org, owners, statuses, limit=limit, offset=offset)
    store = store_of(desk)
    heads = await store.heads([SessionKey(desk.org, row.owner, row.session_id) for row in rows])
    results = [_shown(row, head) for row, head in zip(rows, heads, strict=True)]
    return {"results": results, "count": len(rows), "total": total, "position": position}


def no_message(session_id: str, record_id: str) -> UnknownSession:
    """The error for an id that the session has no words of."""
    return UnknownSession(
        f"the session {session_id[:200]!r} has no message or summary {record_id[:200]!r}: check the id",
        id=record_id[:200],
    )


def _shown(row: Session, head: Head | None) -> JsonObject:
    return {
        "session_id": row.session_id,
        "owner": row.owner,
        "status": row.status,
        "messages": head.count if head is not None else None,
        "opened_at": row.opened_at,
        "last_at": rfc3339(head.last_us) if head is not None and head.last_us else None,
        "closed_at": row.closed_at,
        "closed_by": row.closed_by,
        "summaries": row.summaries,
        "position": row.position,
    }
