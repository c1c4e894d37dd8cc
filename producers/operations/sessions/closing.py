"""Closing and removing sessions, by request and when their time has come.

Closing marks the head, states the event, and marks the head again: a node that is killed between finds what to go on
with. Removing takes the words first: what is left without its event has no words, and housekeeping states it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import structlog

from kledger.answers.sessions import SessionMoved
from kledger.contract.errors import BrokerUnavailable, LedgerError, UnknownSession, VersionConflict, ViewBehind
from kledger.contract.scopes import Caller
from kledger.contract.words import SessionEnd, SessionRemoval, SessionStatus
from ledger.event import NO_LINEAGE, Lineage, NewEvent
from ledger.events.session import SessionClosed, SessionFact, SessionRemoved, session_entity_id
from ledger.sessions.head import Head
from ledger.sessions.subjects import SessionKey
from producers.operations.desk import Desk
from producers.operations.publish import publish
from producers.operations.sessions.extracting import ask_extraction
from producers.operations.sessions.whose import as_logged, changed_as, found, now_us, store_of, unknown
from projections.views.sessions import ask
from projections.views.sessions.ask import Session

log = structlog.get_logger(__name__)

_TRIES = 10
_PAGE = 500
_OPENING_US = 60_000_000
"""For so long the words of a session that the log has opened may still be on their way."""


async def close(
    desk: Desk, caller: Caller, lineage: Lineage, session_id: str, *, owner: str | None = None
) -> SessionMoved:
    """Close a session of the caller's; closing it again changes nothing.

    Raises UnknownSession, BrokerUnavailable, ViewBehind.
    """
    session = await found(desk, caller, session_id, owner, changes=True)
    position = await close_now(desk, lineage, session.key, "request")
    return SessionMoved(session_id=session_id, status="closed", position=position)


async def remove(
    desk: Desk, caller: Caller, lineage: Lineage, session_id: str, *, owner: str | None = None
) -> SessionMoved:
    """Remove the words of a session of the caller's for good; removing it again changes nothing.

    Raises UnknownSession, BrokerUnavailable, ViewBehind.
    """
    try:
        key = (await found(desk, caller, session_id, owner, changes=True)).key
    except UnknownSession:
        key = await _without_words(desk, caller, session_id, owner)
    position = await remove_now(desk, lineage, key, "request")
    return SessionMoved(session_id=session_id, status="removed", position=position)


async def _without_words(desk: Desk, caller: Caller, session_id: str, owner: str | None) -> SessionKey:
    """The caller's session of which the log alone knows. Raises UnknownSession."""
    for each in changed_as(caller, owner):
        key = SessionKey(desk.org, each, session_id)
        if await as_logged(desk, key) is not None:
            return key
    raise unknown(session_id)


async def close_now(
    desk: Desk,
    lineage: Lineage,
    key: SessionKey,
    cause: SessionEnd,
    still: Callable[[Head], bool] = lambda _head: True,
) -> int:
    """Close a session; returns the log position of its last event. `still` says whether its head lets it be closed."""
    store = store_of(desk)
    async with store.turn(key):
        for _ in range(_TRIES):
            head = await store.head(key)
            if head is None or head.state == "closed" or not still(head):
                break
            marked = head if head.state == "closing" else await store.put_head(key, replace(head, state="closing"))
            if marked is None:  # another node was faster
                continue
            position = await _stated(desk, lineage, key, SessionClosed, cause, head.count)
            marked = await ask_extraction(desk, key, marked)
            if await store.put_head(key, replace(marked, state="closed")) is not None:
                return position
        else:
            raise VersionConflict(f"others append to the session {key.session_id[:80]!r} all the time: try again")
    known = await as_logged(desk, key)
    return known.position if known is not None else 0


async def remove_now(
    desk: Desk,
    lineage: Lineage,
    key: SessionKey,
    cause: SessionRemoval,
    still: Callable[[Head | None], bool] = lambda _head: True,
) -> int:
    """Remove the words of a session; returns the log position of its last event. `still` as in `close_now`."""
    store = store_of(desk)
    async with store.turn(key):
        head = await store.head(key)
        if not still(head):
            return 0
        await store.purge(key)
        return await _stated(desk, lineage, key, SessionRemoved, cause, head.count if head is not None else 0)


async def _stated(
    desk: Desk,
    lineage: Lineage,
    key: SessionKey,
    kind: type[SessionClosed] | type[SessionRemoved],
    cause: SessionEnd | SessionRemoval,
    count: int,
) -> int:
    """State what became of a session unless the log has it already; the position of its last event."""
    known = await as_logged(desk, key)
    if known is None:  # restored words of a session that the restored log does not have
        return 0
    if known.status == "removed" or (known.status == "closed" and kind is SessionClosed):
        return known.position
    fact: SessionFact = kind.model_validate(
        {"session_id": key.session_id, "owner": key.owner, "cause": cause, "messages": count}
    )
    event = NewEvent(fact, session_entity_id(key.owner, key.session_id), key.owner, desk.org, lineage)
    (appended,) = await publish(desk.ledger, desk.tally, [event])
    return appended.position


async def housekeeping(desk: Desk, may_remove: Callable[[], bool] = lambda: True) -> tuple[int, int]:
    """Close the sessions that are idle, remove those whose time is over; how many of each.

    `may_remove` says whether this node's clock, read just before, is to be believed: words that were removed are gone.
    What nobody has said a word in for so long is looked up in the log's view, and judged by the words themselves.
    Raises BrokerUnavailable, ViewBehind.
    """
    store = store_of(desk)
    settings = store.settings
    closed = removed = 0

    def is_idle(head: Head) -> bool:
        return head.state == "closing" or now_us() - head.last_us > settings.idle_us

    def is_over(head: Head | None) -> bool:
        return head is None or (head.state == "closed" and now_us() - head.last_us > settings.kept_us)

    async def open_one(row: Session, key: SessionKey, head: Head | None) -> None:
        nonlocal closed, removed
        if head is None:
            # Its words were removed, with their person or by a removal that was cut off; or they are just coming.
            if now_us() - row.updated_us > _OPENING_US:
                await remove_now(desk, NO_LINEAGE, key, "expired", lambda now: now is None)
                removed += 1
        elif head.state == "closed":  # a restored log may end before it was closed
            await _stated(desk, NO_LINEAGE, key, SessionClosed, "idle", head.count)
            closed += 1
        elif is_idle(head) and now_us() - await store.active_us(key, head) > settings.idle_us:
            await close_now(desk, NO_LINEAGE, key, "idle", is_idle)
            await store.end_scratchpad(key)
            closed += 1

    async def closed_one(_row: Session, key: SessionKey, head: Head | None) -> None:
        nonlocal removed
        if is_over(head) and may_remove():
            await remove_now(desk, NO_LINEAGE, key, "expired", is_over)
            removed += 1

    await _each(desk, "open", open_one)
    if may_remove():  # asked in each round, so that it is a round ago at most that the clock was last looked at
        await _each(desk, "closed", closed_one)
    return closed, removed


async def _each(
    desk: Desk, status: SessionStatus, look: Callable[[Session, SessionKey, Head | None], Awaitable[None]]
) -> None:
    """Call `look` with each session that has this status in the log, and its head."""
    store, after = store_of(desk), 0
    while True:
        rows = await desk.view.ask(ask.not_removed, desk.org, status, after, _PAGE)
        keys = [SessionKey(desk.org, row.owner, row.session_id) for row in rows]
        for row, key, head in zip(rows, keys, await store.heads(keys), strict=True):
            try:
                await look(row, key, head)
            except (BrokerUnavailable, ViewBehind):
                raise
            except LedgerError as error:  # of this session: it keeps no other one from its end
                log.warning("a session could not be ended", position=row.position, code=error.code, error=error.message)
        if len(rows) < _PAGE:
            return
        after = rows[-1].position
