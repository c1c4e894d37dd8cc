"""Words of a session for a model: what messages that are named by their ids say, read where the words stand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from consumers.reactors.work import Work
from kledger.contract.errors import UnknownSession
from ledger.event import JsonObject
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.words import Message
from projections.views.processes.ask import Process

MOST_CHARACTERS, OF_A_PROMPT = 8_000, 120_000
"""Of one message in a prompt, and of all together."""
_AT_ONCE = 32


async def words_of(work: Work, process: Process, messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Messages with what they say: those that name a session without a content have that of the owner's session.

    Raises UnknownSession when none of them is there any more.
    """
    named = [each for each in messages if "content" not in each and isinstance(each.get("session"), str)]
    if not named or work.sessions is None:
        return list(messages)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def read(store: SessionStore, each: JsonObject) -> Message | None:
        async with limit:
            return await store.message(SessionKey(work.org, process.owner, each["session"]), str(each.get("id")))

    found = await asyncio.gather(*(read(work.sessions, each) for each in named))
    there = {message.id: message for message in found if message is not None and not message.erased}
    if not there:
        raise UnknownSession(f"the words that {process.id} is about are kept no longer", id=process.id)
    most = min(MOST_CHARACTERS, OF_A_PROMPT // len(there))
    said: list[JsonObject] = []
    for each in messages:
        if "content" in each:
            said.append(each)
        elif (message := there.get(str(each.get("id")))) is not None:
            said.append({"id": message.id, "role": message.role, "content": message.content[:most]})
    return said
