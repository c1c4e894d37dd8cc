"""Store of sessions: appends messages once each, reads them in order, and removes whole sessions.

The last messages of the sessions in use are kept in memory, as far as MOST_REMEMBERED bytes go. Each use compares with
the head of the session at the stream's leader, so another node's appends are seen.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from kledger.contract.errors import BrokerUnavailable
from ledger import one_answer
from ledger.event import JsonObject
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.vault import Held, Vault
from ledger.sessions.head import Head, head_read
from ledger.sessions.message_batch import first_batch
from ledger.sessions.port import NewRecord, Record, SessionStream
from ledger.sessions.said_again import unknown
from ledger.sessions.settings import SessionSettings
from ledger.sessions.subjects import SessionKey, key_of, of_message, of_owner
from ledger.sessions.summaries import Summary, summary_read
from ledger.sessions.tail import Tail, Tails, extend, remember
from ledger.sessions.words import Message, Sealer, about_of, document_of, words_of, written

PAGE_MESSAGES = 100
"""A page is read in parts of so many messages, until it has as many bytes as an answer may have."""
MOST_SUMMARIES, MOST_SUMMED = 1_000, 500
"""Of one session; sessions whose summaries are in memory."""
MOST_OLDER = 16 * 1024 * 1024
"""Bytes of a session's older system prompts that a context reads, the newest first."""
_LOOKUPS, _AT_ONCE, _READINGS = 16, 8, 2
"""Records that are looked for, whole messages that are read, and lists of them, at once on the node's connection: a
broker cuts a connection off for which too many bytes wait."""
_TRIES = 10


class Outcome(NamedTuple):
    """What became of messages, and the session's head after it."""

    head: Head
    appended: int
    duplicates: int


class Noted(NamedTuple):
    """A scratchpad, when it was written, and where its record is (0: there is none)."""

    document: JsonObject
    at_us: int
    position: int


class Summed(NamedTuple):
    """The summaries of a session that are known, up to a position of the stream, since its words began."""

    begun: int
    position: int
    summaries: list[Summary]


class SessionStore:
    """The sessions of one node, over a stream of words."""

    def __init__(
        self,
        stream: SessionStream,
        vault: Vault | None,
        settings: SessionSettings | None = None,
        holding: HoldingBack | None = None,
    ) -> None:
        self.stream = stream
        self.settings = settings or SessionSettings()
        self._holding = holding or HoldingBack()
        self._sealer = Sealer(vault)
        self._tails: Tails = OrderedDict()
        self._summaries: OrderedDict[SessionKey, Summed] = OrderedDict()
        self._beside: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()
        self._opening = asyncio.Semaphore(_AT_ONCE)
        self._reading = asyncio.Semaphore(_READINGS)
        self._looking = asyncio.Semaphore(_LOOKUPS)

    def turn(self, key: SessionKey) -> asyncio.Lock:
        """The lock of whoever changes a session on this node."""
        return self._turns.setdefault(key, asyncio.Lock())

    def drop(self) -> None:
        """Forget all words and keys in memory: somebody's key was destroyed."""
        self._tails, self._summaries = OrderedDict(), OrderedDict()  # new ones: what is being read is not put there
        self._sealer.drop()

    async def require_writable(self, owner: str) -> None:
        """Raise SubjectForgotten for an owner who was forgotten."""
        await self._sealer.key_to_seal(owner)

    async def head(self, key: SessionKey) -> Head | None:
        """What a session is; None where there are no words of it. Raises BrokerUnavailable."""
        record = await self.stream.last(key.head())
        return None if record is None else head_read(record.body, record.position)

    async def heads(self, keys: Sequence[SessionKey]) -> list[Head | None]:
        """What each of these sessions is; None where there are no words of it. Raises BrokerUnavailable."""

        async def one(key: SessionKey) -> Head | None:
            async with self._looking:
                return await self.head(key)

        return await asyncio.gather(*map(one, keys))

    async def put_head(self, key: SessionKey, head: Head) -> Head | None:
        """Replace the head that is at `head.position`; None when there is another one by now."""
        position = await self.stream.put([NewRecord(key.head(), head.written(), head.position)])
        if position is None:
            return None
        after = replace(head, position=position)
        if (tail := self._tails.get(key)) is not None and tail.head.position == head.position:
            tail.head = after  # no message came
        return after

    async def append(
        self, key: SessionKey, head: Head, said: Sequence[JsonObject], at_us: int, trace_id: str | None = None
    ) -> Outcome:
        """Append messages (with their `id`) after a head; position 0 begins the session. An id counts once.

        Each record names the trace in which its message was appended.

        The caller holds the session's turn. Raises MessageExists, PayloadTooLarge, IllegalSubject, SubjectForgotten,
        BrokerUnavailable; then the first ones may be stored, but for MessageExists: of that, only where another node
        appends at the same moment, and they are more than one batch.
        """
        async with self._holding.under_way([key.owner]):
            return await self._append(key, head, said, at_us, trace_id)

    async def _append(
        self, key: SessionKey, head: Head, said: Sequence[JsonObject], at_us: int, trace_id: str | None
    ) -> Outcome:
        tails = self._tails
        data_key = await self._sealer.key_to_seal(key.owner)
        tail = tails.get(key)
        known = tail.messages if tail is not None and tail.head.position == head.position else ()
        left = unknown(said, {message.id: message for message in known})
        appended, looked_for = 0, not head.count
        for _ in range(_TRIES):
            if not left:
                return Outcome(head, appended, len(said) - appended)
            batch = first_batch(key, left, head.count, at_us=at_us, trace_id=trace_id, data_key=data_key)
            if len(batch.messages) < len(left) and not looked_for:
                # A batch is stored whole or not at all; of those behind it a conflict is to change nothing as well.
                first, rest = left[: len(batch.messages)], left[len(batch.messages) :]
                looked_for, left = True, [*first, *await self.not_there(key, rest)]
            after = head.with_messages(batch.messages)
            position = await self.stream.put([*batch.records, NewRecord(key.head(), after.written(), head.position)])
            if position is not None:
                before, head = head, replace(after, position=position)
                extend(tails, key, before, head, batch.messages, batch.sizes, self.settings.messages)
                appended += len(batch.messages)
                left = left[len(batch.messages) :]
                continue
            now = await self.head(key)
            if now is None or now.position != head.position:
                head = now or replace(head, count=0, position=0)
            left = await self.not_there(key, left)
        raise BrokerUnavailable(f"others append to the session {key.session_id[:80]!r} all the time: retry")

    async def message(self, key: SessionKey, message_id: str) -> Message | None:
        """One message; None where the session has none of this id."""
        tail = self._tails.get(key)
        if tail is not None and message_id in tail.sizes:
            return next(message for message in tail.messages if message.id == message_id)
        async with self._opening:
            record = await self.stream.last(key.one("said", message_id))
            return None if record is None else (await self._messages(key, [record]))[0]

    async def named(self, org: str, owner: str | None, message_id: str, limit: int) -> list[tuple[SessionKey, Message]]:
        """The messages of an id in the sessions of an owner, or of every owner, with the session of each."""
        async with self._opening:
            records = await self.stream.after(of_message(org, owner, message_id), 0, limit, one_answer.MOST_BYTES)
            keys = [key_of(record.subject) for record in records]
            return [(key, (await self._messages(key, [record]))[0]) for key, record in zip(keys, records, strict=True)]

    async def page(self, key: SessionKey, after: int, limit: int) -> list[Message]:
        """Messages in order, after a position of the stream (`position_of`); fewer where they are large."""
        found: list[Message] = []
        size = 0
        while len(found) < limit and size < one_answer.MOST_BYTES:
            wanted = min(PAGE_MESSAGES, limit - len(found))
            async with self._reading:
                records = await self.stream.after(key.kind("said"), after, wanted, one_answer.MOST_BYTES - size)
                for record in records:
                    if found and size >= one_answer.MOST_BYTES:
                        break
                    found += await self._messages(key, [record])
                    size += found[-1].size
            if len(records) < wanted and size < one_answer.MOST_BYTES:
                break
            after = records[-1].position
        return found

    async def last(self, key: SessionKey, head: Head, count: int) -> list[Message]:
        """The last `count` messages as of a head, in order; fewer where they are large. Raises BrokerUnavailable."""
        wanted = min(count, head.count)
        async with self._reading:
            records = await self.stream.before(key.kind("said"), head.position, wanted) if wanted else []
            messages = await self._messages(key, records)
        if wanted and (not messages or messages[-1].number != head.count):
            raise BrokerUnavailable(f"the broker does not have all words of {key.session_id[:80]!r} yet: retry")
        return messages

    async def position_of(self, key: SessionKey, message_id: str) -> int | None:
        """Where a message is in the stream; None where the session has none of this id."""
        record = await self.stream.last(key.one("said", message_id))
        return None if record is None else record.position

    async def tail(self, key: SessionKey, head: Head) -> Tail:
        """The last messages as of a head, as many as the settings show in full."""
        tails = self._tails
        known = tails.get(key)
        if known is not None and known.head.position == head.position:
            tails.move_to_end(key)
            return known
        messages = await self.last(key, head, self.settings.messages)
        sizes = {message.id: message.size for message in messages}
        tail = Tail(head, messages, sum(sizes.values()), sizes)
        remember(tails, key, tail)
        return tail

    async def older(self, key: SessionKey, tail: Tail, ids: Iterable[str]) -> dict[str, Message]:
        """Messages of a session by id, those of them that it has; of many large ones the last of `ids`."""
        wanted = list(dict.fromkeys(ids))
        older: dict[str, Message] = {}
        missing = [each for each in wanted if each not in tail.sizes]
        while missing and sum(message.size for message in older.values()) < MOST_OLDER:
            some = [missing.pop() for _ in range(min(_AT_ONCE, len(missing)))]
            unknown = [each for each in some if each not in tail.older]
            read = await asyncio.gather(*(self.message(key, each) for each in unknown))
            tail.older |= {message.id: message for message in read if message is not None}
            older |= {each: tail.older[each] for each in some if each in tail.older}
        tail.older = older
        if self._tails.get(key) is tail:
            remember(self._tails, key, tail)
        last = {message.id: message for message in tail.messages}
        return {each: message for each in wanted if (message := tail.older.get(each) or last.get(each)) is not None}

    async def summaries(self, key: SessionKey, head: Head) -> list[Summary]:
        """The summaries of a session, in the order in which they were made; those known before are not read again."""
        summaries = self._summaries
        known = summaries.get(key)
        if known is None or known.begun != head.begun:
            known = Summed(head.begun, 0, [])
        records = await self.stream.after(key.kind("summary"), known.position, MOST_SUMMARIES)
        if records:
            held = await self._sealer.key_to_open(key.owner)
            read = [_summary(key, record, held, head) for record in records]
            found = [*known.summaries, *(each for each in read if each is not None)]
            known = Summed(head.begun, records[-1].position, found[-MOST_SUMMARIES:])
        summaries[key] = known
        summaries.move_to_end(key)
        while len(summaries) > MOST_SUMMED:
            summaries.popitem(last=False)
        return known.summaries

    async def summary(self, key: SessionKey, record_id: str, head: Head) -> Summary | None:
        """One summary; None where the session has none of this id, or it was erased."""
        record = await self.stream.last(key.one("summary", record_id))
        return None if record is None else _summary(key, record, await self._sealer.key_to_open(key.owner), head)

    async def put_summary(self, key: SessionKey, summary: Summary, at_us: int, begun: int) -> bool:
        """Store a summary of the words that began at `begun`; False where these were removed meanwhile.

        Raises SubjectForgotten, BrokerUnavailable.
        """
        async with self.turn(key), self._holding.under_way([key.owner]):
            data_key = await self._sealer.key_to_seal(key.owner)
            (body,) = written({"id": summary.id, "at": at_us, "begun": begun}, summary.document(), key, data_key)
            subject = key.one("summary", summary.id)
            before = await self.stream.last(subject)
            stale = before is not None and about_of(before.body).get("begun", 0) != begun
            expects = before.position if before is not None and stale else 0
            if await self._is_of(key, begun) and (before is None or stale):
                await self.stream.put([NewRecord(subject, body, expects)])
            if await self._is_of(key, begun):
                return True
            await self.stream.purge(subject)  # another node removed the session in between
            return False

    async def _is_of(self, key: SessionKey, begun: int) -> bool:
        head = await self.head(key)
        return head is not None and head.begun == begun

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside a request, until it is done or the store is closed."""
        task = asyncio.create_task(work, name="session")
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def scratchpad(self, key: SessionKey, head: Head, now_us: int) -> Noted:
        """The scratchpad of a session; empty where it has ended, or was erased with its person."""
        record = await self.stream.last(key.scratchpad())
        if record is None:
            return Noted({}, 0, 0)
        about = about_of(record.body)
        noted = Noted({}, about["at"], record.position)
        idle = now_us - max(about["at"], head.last_us) > self.settings.idle_us
        if idle or about["at"] < head.fresh_us or about.get("begun", 0) != head.begun:
            return noted
        document = document_of(about, words_of(record.body), key, await self._sealer.key_to_open(key.owner))
        return noted._replace(document=document or {})

    async def note(self, key: SessionKey, document: JsonObject, at_us: int, before: Noted, begun: int) -> bool:
        """Replace the scratchpad that was `before`, of the words that began at `begun`.

        False when there is another one by now, or the words were removed. The caller holds the session's turn.
        Raises SubjectForgotten, PayloadTooLarge, BrokerUnavailable.
        """
        async with self._holding.under_way([key.owner]):
            data_key = await self._sealer.key_to_seal(key.owner)
            (body,) = written({"id": "scratchpad", "at": at_us, "begun": begun}, document, key, data_key)
            if await self.stream.put([NewRecord(key.scratchpad(), body, before.position)]) is None:
                return False
        if await self._is_of(key, begun):
            return True
        await self.end_scratchpad(key)  # another node removed the session in between
        return False

    async def active_us(self, key: SessionKey, head: Head) -> int:
        """When something was last said or noted in a session."""
        record = await self.stream.last(key.scratchpad())
        return max(head.last_us, about_of(record.body)["at"] if record is not None else 0)

    async def end_scratchpad(self, key: SessionKey) -> None:
        """Remove the scratchpad of a session."""
        await self.stream.purge(key.scratchpad())

    async def purge(self, key: SessionKey) -> None:
        """Remove everything of a session."""
        self._tails.pop(key, None)
        self._summaries.pop(key, None)
        await self.stream.purge(key.all())

    async def purge_owner(self, org: str, owner: str) -> int:
        """Remove everything of all sessions of an owner; returns the number of records."""
        self.drop()
        return await self.stream.purge(of_owner(org, owner))

    async def close(self) -> None:
        """End what is done beside, and close the connection."""
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        await self.stream.close()

    async def not_there(self, key: SessionKey, said: Sequence[JsonObject]) -> list[JsonObject]:
        """Those of the messages that the session does not have. Raises MessageExists."""

        async def is_there(document: JsonObject) -> bool:
            async with self._opening:
                record = await self.stream.last(key.one("said", document["id"]))
                if record is None:
                    return False
                (stored,) = await self._messages(key, [record])
                return not unknown([document], {stored.id: stored})

        there = await asyncio.gather(*map(is_there, said))
        return [document for document, known in zip(said, there, strict=True) if not known]

    async def _messages(self, key: SessionKey, records: Sequence[Record]) -> list[Message]:
        """The messages of records, opened; their further parts are read as well."""
        held = await self._sealer.key_to_open(key.owner)
        messages = []
        for record in records:
            about = about_of(record.body)
            words, size = words_of(record.body), len(record.body)
            for part in range(1, about["parts"]):
                more = await self.stream.last(key.one("part", about["id"], part))
                if more is not None:
                    words, size = words + more.body, size + len(more.body)
            said = document_of(about, words, key, held)
            message = Message(
                about["id"], about["n"], about["at"], said or {}, said is None, trace_id=about.get("trace")
            )
            messages.append(replace(message, position=record.position, size=size))
        return messages


def _summary(key: SessionKey, record: Record, held: Held | None, head: Head) -> Summary | None:
    """The summary of a record; None where it was erased, or is of words that were removed."""
    about = about_of(record.body)
    if about.get("begun", 0) != head.begun:
        return None
    document = document_of(about, words_of(record.body), key, held)
    return None if document is None else summary_read(about["id"], document)
