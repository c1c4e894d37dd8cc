"""Requests about sessions: what is said in one, what fits a model's window, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from kledger.client.faces import Endpoint
from kledger.client.wire import Wire, segment
from kledger.contract.words import SessionFilter

if TYPE_CHECKING:
    from kledger.answers.sessions import (
        AppendedMessages,
        Expanded,
        MessageList,
        SaidMessages,
        SessionContext,
        SessionKnowledge,
        SessionList,
        SessionMoved,
        SessionScratchpad,
        SessionSummaries,
    )

SESSIONS = "/api/sessions"


def _path(wire: Wire, rest: str = "") -> str:
    return f"{SESSIONS}/{segment(wire.session_id)}{rest}"


async def append(wire: Wire, messages: Sequence[Mapping[str, Any]]) -> AppendedMessages:
    """Append messages in order: objects with `role` and `content`, and what else a message has.

    One without an `id` gets one. A message that the session has already changes nothing, so that what is sent again
    after an error is there once. The session opens with its first message. MessageExists where one has the id of
    another; InvalidPayload, PayloadTooLarge.
    """
    said = [{"id": uuid4().hex, **message} for message in messages]
    return await wire.write("POST", _path(wire, "/messages"), {"messages": said})


async def messages(wire: Wire, *, after: str | None = None, limit: int = 100, owner: str | None = None) -> MessageList:
    """A page of the messages in order; `next` is the `after` of the next page, null at the end. UnknownSession."""
    return await wire.look(_path(wire, "/messages"), {"after": after, "limit": limit, "owner": owner})


async def context(wire: Wire, max_tokens: int, *, model: str | None = None, owner: str | None = None) -> SessionContext:
    """What of the session fits a model's window of `max_tokens`: at most 70 % of it, as the node is set up.

    Kept in this order: system prompts > the user's last message > tool results > the rest. `model` chooses the tokens
    that are counted. What was shortened or left out is said, and `expand` gives it back. UnknownSession.
    """
    params = {"max_tokens": max_tokens, "model": model, "owner": owner}
    return await wire.look(_path(wire, "/context"), params)


async def expand(wire: Wire, id: str, *, owner: str | None = None) -> Expanded:
    """The words behind an id, whole: a message, or the messages that a summary stands for. UnknownSession."""
    return await wire.look(_path(wire, f"/expand/{segment(id)}"), {"owner": owner})


async def summaries(wire: Wire, *, owner: str | None = None) -> SessionSummaries:
    """What was summed up of the session by now; nothing is summed up for this. UnknownSession."""
    return await wire.look(_path(wire, "/summaries"), {"owner": owner})


async def knowledge(
    wire: Wire, *, after: str | None = None, limit: int = 100, owner: str | None = None
) -> SessionKnowledge:
    """The items that came of a page of the messages, or of the session as a whole. UnknownSession."""
    return await wire.read(_path(wire, "/knowledge"), {"after": after, "limit": limit, "owner": owner})


async def scratchpad(
    wire: Wire, patch: Mapping[str, Any] | None = None, *, owner: str | None = None
) -> SessionScratchpad:
    """Where the work stands: `current_goal`, `sub_goals`, `completed`, `current_step`, `decisions`, `blockers`.

    A `patch` is merged in (RFC 7396): None removes a field, a list is replaced whole. It ends after 30 idle minutes.
    UnknownSession.
    """
    path, params = _path(wire, "/scratchpad"), {"owner": owner}
    if patch is None:
        return await wire.look(path, params)
    return await wire.write("PATCH", path, {"scratchpad": dict(patch)}, params=params)


async def close(wire: Wire, *, owner: str | None = None) -> SessionMoved:
    """Close the session; a further message opens it again. UnknownSession."""
    return await wire.write("POST", _path(wire, "/close"), params={"owner": owner})


async def remove(wire: Wire, *, owner: str | None = None) -> SessionMoved:
    """Remove the words of the session for good. UnknownSession."""
    return await wire.write("DELETE", _path(wire), params={"owner": owner})


async def sessions(
    wire: Wire,
    *,
    status: SessionFilter | None = None,
    owner: str | None = None,
    limit: int = 20,
    offset: int = 0,
) -> SessionList:
    """A page of the caller's sessions, the one that was opened or closed last first.

    Without a `status` those that have words: open and closed ones. The operator's are those of all, unless an `owner`
    is named.
    """
    return await wire.read(SESSIONS, {"status": status, "owner": owner, "limit": limit, "offset": offset})


async def said(wire: Wire, message_id: str, *, owner: str | None = None) -> SaidMessages:
    """The words of a message by its id, with the session of the caller's in which it was said: of each that has one."""
    return await wire.look(f"/api/messages/{segment(message_id)}", {"owner": owner})


class SessionEndpoints:
    """One session: what is said in it, and its end."""

    append = Endpoint(append)
    messages = Endpoint(messages)
    context = Endpoint(context)
    expand = Endpoint(expand)
    summaries = Endpoint(summaries)
    knowledge = Endpoint(knowledge)
    scratchpad = Endpoint(scratchpad)
    close = Endpoint(close)
    remove = Endpoint(remove)


class SessionListEndpoints:
    """The sessions of the caller."""

    sessions = Endpoint(sessions)
    said = Endpoint(said)
