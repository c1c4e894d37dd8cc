"""Whose session it is: the words behind an id, for those alone who may know that there are any.

A session belongs to who appends to it; a caller of several identities appends as the most specific one, and reads the
sessions of each. To everybody else it does not exist.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from kledger.contract.errors import InvalidPayload, NotAvailable, UnknownSession
from kledger.contract.scopes import Caller
from kledger.contract.sessions import SessionId
from ledger.events.session import session_entity_id
from ledger.sessions.head import Head
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from producers.operations.desk import Desk, first_entity, folded
from producers.requests.reading import refusal
from projections.views.sessions import ask
from projections.views.sessions.ask import Session

_ID: TypeAdapter[str] = TypeAdapter(SessionId)


@dataclass(frozen=True, slots=True)
class Found:
    """A session of the caller's that has words."""

    key: SessionKey
    head: Head


def store_of(desk: Desk) -> SessionStore:
    """The store of words. Raises NotAvailable where the node has none."""
    if desk.sessions is None:
        raise NotAvailable("this node keeps no sessions")
    return desk.sessions


def now_us() -> int:
    """Microseconds since 1970, by this node's clock."""
    return time.time_ns() // 1_000


def checked(session_id: str) -> str:
    """A legal id of a session. Raises InvalidPayload."""
    try:
        return _ID.validate_python(session_id)
    except ValidationError as error:
        raise refusal(error.errors(include_url=False, include_input=False), "the id of the session") from error


def unknown(session_id: str) -> UnknownSession:
    """The error for a session that is not there, or not the caller's."""
    return UnknownSession(
        f"there is no session {session_id[:200]!r} of yours that has words: append to it first, or check the id and "
        "as whom you ask",
        id=session_id[:200],
    )


def owners_of(caller: Caller, owner: str | None) -> list[str]:
    """Whose sessions the caller may mean, the most specific identity first; none where `owner` is somebody else."""
    owners = [owner] if owner is not None else caller.reading_as()
    return [each for each in owners if caller.may_act_for(each)]


def changed_as(caller: Caller, owner: str | None) -> list[str]:
    """Whose session the caller may change: that of the identity that appends, or of the `owner` that is named.

    A session that is not there any more is not looked for among those of the caller's other identities.
    """
    return owners_of(caller, owner if owner is not None else first_entity(caller))


async def found(
    desk: Desk, caller: Caller, session_id: str, owner: str | None = None, *, changes: bool = False
) -> Found:
    """The caller's session with this id; `changes`: one that the caller is to change.

    Raises UnknownSession, BrokerUnavailable.
    """
    store = store_of(desk)
    owners = changed_as(caller, owner) if changes else await _read_of(desk, caller, owner, session_id)
    try:
        keys = [SessionKey(desk.org, each, checked(session_id)) for each in owners]
    except InvalidPayload:  # no session can have this id
        keys = []
    heads = await store.heads(keys)
    for key, head in zip(keys, heads, strict=True):
        if head is not None:
            return Found(key, head)
    raise unknown(session_id)


async def _read_of(desk: Desk, caller: Caller, owner: str | None, session_id: str) -> list[str]:
    """Whose session the caller may mean who reads one; the operator's own come before those of others."""
    owners = owners_of(caller, owner)
    if owner is None and caller.is_operator:
        owners += await desk.view.ask(ask.owners_of_id, desk.org, session_id)
    return list(dict.fromkeys(owners))


async def as_logged(desk: Desk, key: SessionKey) -> Session | None:
    """What the log knows of a session, as of its last event. Raises BrokerUnavailable, ViewBehind."""
    await folded(desk, "session", session_entity_id(key.owner, key.session_id))
    return await desk.view.ask(ask.session, desk.org, key.owner, key.session_id)
