"""Reactor of summaries: a small model sums up a segment of a session, or all its summaries in one overview.

The summary is stored with the words under an id that follows from the segment, and then stated: a crash between the two
finds it there, and asks no model again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from consumers.model import Answer
from consumers.prompting import element, prompt
from consumers.reactors.material import one_line
from consumers.reactors.subscription import Request
from consumers.reactors.work import ProcessState, Work
from consumers.structured import Structured
from kledger.contract.errors import (
    Erased,
    InvalidPayload,
    LedgerError,
    ModelFailed,
    NotAvailable,
    NotOwner,
    UnknownSession,
)
from ledger.events.session import SessionSummarised, session_entity_id
from ledger.events.summary import SummaryCompleted, SummaryFailed, SummaryStarted
from ledger.events.usage import Usage
from ledger.prompts import language_of
from ledger.sessions.head import Head
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.summaries import Summary, summary_id
from ledger.sessions.words import Message
from projections.views.times import rfc3339

MOST_TEXT, MOST_ENTRY, MOST_ENTRIES = 600, 300, 40
"""Characters of each part of a summary, and of an entry of a list; entries of a list."""
MOST_CALLS = 8
"""Of a message, in the prompt."""
MOST_SEGMENT = 100
"""Messages of a segment, whoever asks for it."""
OF_A_MESSAGE, OF_A_RESULT, OF_A_PROMPT = 4_000, 400, 60_000
"""Characters in the prompt of what somebody says, of what a tool answers, and of all together."""


class Segment(Structured):
    """What a model makes of a segment."""

    discussed: str
    decided: str
    concluded: str


class Overview(Structured):
    """What a model makes of all summaries."""

    overview: str
    decisions: list[str]
    todos: list[str]
    agreements: list[str]


class Summarising:
    """The reactor of `summary.requested`; see consumers.reactors.subscription.Reactor."""

    name = "summarise"
    kind = "summary"
    stages: tuple[str, ...] = ("requested",)
    at_once = 2

    def __init__(self, work: Work) -> None:
        self._work = work

    async def react(self, request: Request) -> None:
        """Have a model sum up what is asked for, store it, and state it."""
        state = await self._work.under_way(self.kind, request.id)
        if state is None:
            return
        asked, store = state.process.requested, self._work.sessions
        if asked["owner"] != state.process.owner:  # interfaces name the owner, a publisher over NATS may not
            raise NotOwner(f"{state.process.owner} may not have a session of {asked['owner']} summed up")
        if store is None:
            raise NotAvailable("this node keeps no sessions")
        if asked["last"] - asked["first"] >= MOST_SEGMENT if asked["level"] == 2 else asked["first"] != 1:
            raise InvalidPayload(
                f"a segment has {MOST_SEGMENT} messages at most, and an overview begins with the first one", errors=[]
            )
        key = SessionKey(self._work.org, state.process.owner, asked["session_id"])
        record_id = summary_id(asked["level"], asked["first"], asked["last"])
        head = await store.head(key)
        if head is None:
            raise _gone(state)
        summary = await store.summary(key, record_id, head)
        if summary is None:
            summary = await self._made(state, store, key, head)
            if not await store.put_summary(key, summary, time.time_ns() // 1_000, head.begun):
                raise _gone(state)
            state = await self._work.state(self.kind, request.id) or state
        await self._state(state, key, summary)

    async def fail(self, request: Request, error: LedgerError) -> None:
        """See Reactor.fail."""
        state = await self._work.under_way(self.kind, request.id)
        if state is not None:
            await self._work.record_failure(state, error, SummaryFailed)

    async def _made(self, state: ProcessState, store: SessionStore, key: SessionKey, head: Head) -> Summary:
        """The summary that a model makes. Raises UnknownSession, Erased, Interrupted, and what the model raises."""
        asked = state.process.requested
        model = self._work.model.named("summarise", asked.get("model"))
        first, last, call = asked["first"], asked["last"], f"{state.process.id}:summarise"
        if head.count < last or first > last:
            raise _gone(state)
        if asked["level"] == 3:
            parts = [each for each in await store.summaries(key, head) if each.last_number <= last]
            text = _of_summaries(parts)
            if not text or all(each.level == 3 or each.last_number != last for each in parts):
                raise UnknownSession(f"there is no summary that {state.process.id} is about", id=state.process.id)
            await self._work.call_begins(state, SummaryStarted(call=call, model=model))
            whole: Answer[Overview] = await self._work.ask(
                state.process, "summarise", prompt("overview", text), Overview, key=call, model=model
            )
            segments = sorted((each for each in parts if each.level == 2), key=lambda each: each.first_number)
            ends = (segments[0].messages[0], next(each for each in segments if each.last_number == last).messages[-1])
            return _overview(whole.value, last, ends, whole.usage)
        messages = [each for each in await store.last(key, head, head.count - first + 1) if each.number <= last]
        readable = [each for each in messages if not each.erased]
        if not messages or messages[0].number != first:
            raise InvalidPayload(f"the words that {state.process.id} is about are too large to be summed up", errors=[])
        if not readable:
            raise Erased(f"the words that {state.process.id} is about were erased", id=state.process.id)
        await self._work.call_begins(state, SummaryStarted(call=call, model=model))
        part: Answer[Segment] = await self._work.ask(
            state.process, "summarise", prompt("summarise", _of_messages(readable)), Segment, key=call, model=model
        )
        return _segment(part.value, first, last, messages, part.usage)

    async def _state(self, state: ProcessState, key: SessionKey, summary: Summary) -> None:
        """State that there is a summary, in one batch with the end of the process."""
        usage = Usage.model_validate(summary.usage)
        ids = summary.messages
        fact = SessionSummarised(
            session_id=key.session_id,
            owner=key.owner,
            level=summary.level,
            summary=summary.id,
            first=ids[0],
            last=ids[-1],
            messages=summary.last_number - summary.first_number + 1,
            usage=usage,
        )
        about = session_entity_id(key.owner, key.session_id)
        await self._work.keep(
            [
                self._work.event(state.process, fact, "summarised", entity_id=about),
                self._work.event(
                    state.process,
                    SummaryCompleted(summary=summary.id, usage=usage),
                    "completed",
                    expects=state.last,
                ),
            ]
        )


def _gone(state: ProcessState) -> UnknownSession:
    return UnknownSession(f"the words that {state.process.id} is about are not there", id=state.process.id)


def _of_messages(messages: Sequence[Message]) -> str:
    """The prompt text of messages."""
    parts = []
    most = min(OF_A_MESSAGE, OF_A_PROMPT // len(messages))
    for message in messages:
        content = message.content[: min(most, OF_A_RESULT) if message.role == "tool" else most]
        calls = [str(call)[:OF_A_RESULT] for call in (message.said.get("tool_calls") or ())[:MOST_CALLS]]
        by = f"{message.role} {message.said.get('name', '')}".strip()
        at = str(message.said.get("created_at") or rfc3339(message.at_us))
        parts.append(element("said", "\n".join([content, *calls]), by=by, time=at))
    return "\n".join(parts)


def _of_summaries(summaries: Sequence[Summary]) -> str:
    """The prompt text of the last overview and of what comes after it; empty where there is nothing."""
    overviews = [each for each in summaries if each.level == 3]
    before = max(overviews, key=lambda each: each.last_number, default=None)
    upto = before.last_number if before is not None else 0
    parts = [each for each in summaries if each.level == 2 and each.last_number > upto]
    if not parts:
        return ""
    lines = [element("summary", each.text, "overview") for each in sorted(parts, key=lambda each: each.first_number)]
    if before is not None:
        lists = "\n".join((*before.decisions, *before.todos, *before.agreements))
        lines.insert(0, element("overview", f"{before.text}\n{lists}", "summary"))
    return "\n".join(lines)


def _segment(made: Segment, first: int, last: int, messages: Sequence[Message], usage: Usage) -> Summary:
    """The summary in the form of source 004. Raises ModelFailed for an empty one."""
    parts = [one_line(each, MOST_TEXT) for each in (made.discussed, made.decided, made.concluded)]
    if not any(parts):
        raise ModelFailed("the model summed a segment up in no words: choose another model", usage=usage.model_dump())
    discussed, decided, concluded = (each or "—" for each in parts)
    if language_of("".join(parts)) == "zh":
        text = f"[摘要] 用户讨论了 {discussed}，Agent 决定了 {decided}，关键结论是 {concluded}"
    else:
        text = f"[summary] the user discussed {discussed}; the agent decided {decided}; the conclusion is {concluded}"
    ids = tuple(message.id for message in messages)
    return Summary(summary_id(2, first, last), 2, first, last, text, messages=ids, usage=usage.model_dump())


def _overview(made: Overview, last: int, ends: tuple[str, str], usage: Usage) -> Summary:
    """The overview of all summaries up to a message. Raises ModelFailed for an empty one."""
    text = one_line(made.overview, 3 * MOST_TEXT)
    if not text:
        raise ModelFailed("the model wrote an overview in no words: choose another model", usage=usage.model_dump())
    decisions, todos, agreements = (
        tuple(entry for each in entries[:MOST_ENTRIES] if (entry := one_line(each, MOST_ENTRY)))
        for entries in (made.decisions, made.todos, made.agreements)
    )
    record_id, cost = summary_id(3, 1, last), usage.model_dump()
    return Summary(record_id, 3, 1, last, text, decisions, todos, agreements, ends, cost)
