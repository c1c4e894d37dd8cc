"""Words for a model that a request only names: what was said in a session, and verdicts with their items."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from consumers.reactors.work import Work
from kledger.contract.errors import Erased, UnknownSession
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.words import Message
from projections.views.feedback import ask as feedback
from projections.views.knowledge import ask as knowledge
from projections.views.processes.ask import Process
from projections.views.times import rfc3339

MOST_CHARACTERS, OF_A_PROMPT = 8_000, 120_000
"""Of one message in a prompt, and of all together."""
_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Said:
    """Messages with what they say. `traces`: in which trace those were said that a request only names, by their ids."""

    messages: Sequence[JsonObject]
    traces: Mapping[str, str] = field(default_factory=dict)


async def words_of(work: Work, process: Process, messages: Sequence[JsonObject]) -> Said:
    """Messages with what they say: those that name a session without a content have that of the owner's session.

    Raises UnknownSession when none of them is there any more.
    """
    named = [each for each in messages if "content" not in each and isinstance(each.get("session"), str)]
    if not named or work.sessions is None:
        return Said(messages)
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
            by = {"name": message.said["name"]} if "name" in message.said else {}
            at = str(message.said.get("created_at") or rfc3339(message.at_us))
            said.append(
                {"id": message.id, "role": message.role, **by, "created_at": at, "content": message.content[:most]}
            )
    return Said(said, {each.id: each.trace_id for each in there.values() if each.trace_id is not None})


async def with_verdicts(work: Work, process: Process, spoken: Said) -> Said:
    """Messages with what they say: those that name a verdict of the owner's have its words, and as `item` the item
    that it judges, where the owner reads that by itself.

    By a scope alone nobody proves that they read: of other items a model gets what was said of them, and no word.
    Raises Erased when none of them is there any more.
    """
    messages = spoken.messages
    named = [each for each in messages if "content" not in each and isinstance(each.get("verdict"), str)]
    if not named:
        return spoken
    head = await work.ledger.head()
    await work.view.wait_for(head.position)
    ids = [str(each["verdict"]) for each in named]
    cases = await work.view.ask(feedback.worded, work.org, process.owner, ids)
    if not cases:
        raise Erased(f"the verdicts that {process.id} is about are there no longer", id=process.id)
    items: dict[str, JsonObject | None] = {}
    said: list[JsonObject] = []
    traces = dict(spoken.traces)
    for each in messages:
        if "content" in each:
            said.append(each)
        elif (case := cases.get(str(each.get("verdict")))) is not None:
            about = case["knowledge_id"]
            if about not in items:
                items[about] = await work.view.ask(knowledge.item, work.org, Caller.seeing([process.owner]), about)
            said.append({**each, "content": _case(case), "item": _item(items[about])})
            if case["trace_id"] is not None:
                traces.setdefault(str(each.get("id")), case["trace_id"])
    return Said(said, traces)


def _case(case: JsonObject) -> str:
    """A case in lines, under its verdict."""
    words = [f"{word}: {case[word]}" for word in ("task", "query", "outcome", "reason") if case[word]]
    return "\n".join((case["verdict"], *words))[:MOST_CHARACTERS]


def _item(item: JsonObject | None) -> JsonObject | None:
    return None if item is None else {name: str(item[name])[:MOST_CHARACTERS] for name in ("id", "task", "content")}
