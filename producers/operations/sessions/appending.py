"""Appending messages to a session, which opens with its first one.

The log has the opening before the stream of words has the messages: an append that was cut off between the two is
repeated without harm, as a message id counts once. What an append makes due is asked beside it: no request waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kledger.answers.sessions import AppendedMessages
from kledger.contract.scopes import Caller
from kledger.requests.sessions import AppendRequest, SessionMessageBody
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.session import SessionOpened, SessionSummarised, session_entity_id
from ledger.sessions.head import Head
from ledger.sessions.subjects import SessionKey
from ledger.wire.subjects import event_subject
from producers.operations.desk import Desk, first_entity
from producers.operations.publish import publish, refuse_unkeepable
from producers.operations.sessions.extracting import ask_when_due, is_due
from producers.operations.sessions.whose import as_logged, checked, now_us, store_of

_LONGEST_VERB = SessionSummarised.verb()


async def append(
    desk: Desk, caller: Caller, lineage: Lineage, session_id: str, payload: AppendRequest
) -> AppendedMessages:
    """Append messages in order; one that the session has already changes nothing.

    Raises MessageExists (an id is there with other words), InvalidPayload, PayloadTooLarge, IllegalSubject,
    SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    store = store_of(desk)
    owner = first_entity(caller)
    key = SessionKey(desk.org, owner, checked(session_id))
    said = as_documents(payload.messages)
    for document in said:
        key.one("said", document["id"])
    # Of the events of a session this has the longest subject: what can be opened can be removed as well.
    event_subject(desk.org, "session", session_entity_id(owner, session_id), _LONGEST_VERB, owner)
    await store.require_writable(owner)
    async with store.turn(key):
        head = await store.head(key)
        if head is not None and head.state != "open" and not await store.not_there(key, said):
            return _outcome(session_id, 0, len(said), head)
        if head is None or head.state != "open":
            head = await _opened(desk, lineage, key, head)
        now = now_us()
        if (
            now - head.last_us > store.settings.idle_us
            and now - await store.active_us(key, head) > store.settings.idle_us
        ):
            head = replace(head, fresh_us=now)
        head = replace(head, agent=caller.agent or head.agent)
        outcome = await store.append(key, head, said, now, lineage.trace_id)
    if is_due(desk, outcome.head):
        store.spawn(ask_when_due(desk, key))
    return _outcome(session_id, outcome.appended, outcome.duplicates, outcome.head)


def _outcome(session_id: str, appended: int, duplicates: int, head: Head) -> AppendedMessages:
    """What became of messages; `position` is where the log has the opening of the session."""
    return AppendedMessages(
        session_id=session_id, appended=appended, duplicates=duplicates, count=head.count, position=head.opened
    )


def as_documents(messages: Sequence[SessionMessageBody]) -> list[JsonObject]:
    """Messages as they are stored and shown: without what was not stated."""
    return [message.model_dump(exclude_none=True) for message in messages]


async def _opened(desk: Desk, lineage: Lineage, key: SessionKey, head: Head | None) -> Head:
    """The head of a session that the log knows to be open."""
    known = await as_logged(desk, key)
    if known is not None and known.status == "open":  # an earlier append got as far as this
        position = known.position
    else:
        fact = SessionOpened(session_id=key.session_id, owner=key.owner)
        refuse_unkeepable(fact)
        event = NewEvent(fact, session_entity_id(key.owner, key.session_id), key.owner, desk.org, lineage)
        (appended,) = await publish(desk.ledger, desk.tally, [event])
        position = appended.position
    return Head(opened=position, begun=position) if head is None else replace(head, opened=position, state="open")
