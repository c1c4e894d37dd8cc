"""Scratchpad of a session: where an agent stands in its work, patched part by part, until the session is idle."""

from __future__ import annotations

import orjson
from pydantic import ValidationError

from kledger.contract.errors import InvalidPayload, PayloadTooLarge, VersionConflict
from kledger.contract.scopes import Caller
from kledger.contract.sessions import MOST_SCRATCHPAD
from kledger.requests.sessions import Scratchpad, ScratchpadRequest
from ledger.event import JsonObject
from producers.operations.desk import Desk
from producers.operations.sessions.extracting import ask_when_finished, is_due_for_reflection
from producers.operations.sessions.whose import found, now_us, store_of, unknown
from producers.requests.reading import fields_in, refusal
from projections.views.profiles.merge_patch import merge_patch

_TRIES = 10


async def read(desk: Desk, caller: Caller, session_id: str, *, owner: str | None = None) -> JsonObject:
    """The scratchpad of a session; empty where nothing is noted, or it has ended.

    Raises UnknownSession, BrokerUnavailable.
    """
    session = await found(desk, caller, session_id, owner)
    noted = await store_of(desk).scratchpad(session.key, session.head, now_us())
    return {"session_id": session_id, "scratchpad": noted.document}


async def patch(
    desk: Desk, caller: Caller, session_id: str, payload: ScratchpadRequest, *, owner: str | None = None
) -> JsonObject:
    """Apply a merge patch; what does not fit a scratchpad after it changes nothing.

    Raises UnknownSession, InvalidPayload, PayloadTooLarge, SubjectForgotten, BrokerUnavailable, VersionConflict.
    """
    if payload.session_id is not None and payload.session_id != session_id:
        raise InvalidPayload(
            f"session_id is {payload.session_id[:80]!r}, and this is the scratchpad of {session_id[:80]!r}",
            errors=[{"field": "session_id", "reason": "names another session"}],
        )
    store = store_of(desk)
    key = (await found(desk, caller, session_id, owner, changes=True)).key
    async with store.turn(key):
        for _ in range(_TRIES):
            head = await store.head(key)
            if head is None:
                raise unknown(session_id)
            now = now_us()
            noted = await store.scratchpad(key, head, now)
            document = _checked(merge_patch(noted.document, payload.scratchpad) or {})
            if await store.note(key, document, now, noted, head.begun):
                if is_due_for_reflection(desk, noted.document, document):
                    store.spawn(ask_when_finished(desk, key))
                return {"session_id": session_id, "scratchpad": document}
    raise VersionConflict(f"others note in the scratchpad of {session_id[:80]!r} all the time: try again")


def _checked(document: JsonObject) -> JsonObject:
    """The document, if it is a scratchpad. Raises InvalidPayload, PayloadTooLarge."""
    try:
        Scratchpad.model_validate(document)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise refusal(faults, "the scratchpad", fields_in(Scratchpad)) from error
    size = len(orjson.dumps(document))
    if size > MOST_SCRATCHPAD:
        raise PayloadTooLarge(
            f"the scratchpad would have {size:,} bytes, {MOST_SCRATCHPAD:,} are allowed: remove what is done"
        )
    return document
