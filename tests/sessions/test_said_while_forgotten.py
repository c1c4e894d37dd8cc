"""What is said in a session while its person is forgotten: refused, or removed with the rest, and in no memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from kledger.contract.errors import SubjectForgotten
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.vault import MemoryVault
from ledger.sessions.head import Head
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.port import NewRecord, Record
from ledger.sessions.store import Noted, SessionStore
from ledger.sessions.summaries import Summary
from tests.sessions.test_store import MEI, appended, said


class Gate(MemorySessionStream):
    """A stream that holds up what comes through it, once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.come, self.open = asyncio.Event(), asyncio.Event()
        self.open.set()

    async def _through(self) -> None:
        self.come.set()
        await self.open.wait()

    async def put(self, records: Sequence[NewRecord]) -> int | None:
        await self._through()
        return await super().put(records)

    async def last(self, subject: str) -> Record | None:
        if ".part." in subject:
            await self._through()
        return await super().last(subject)

    def close_gate(self) -> None:
        """Hold up what comes from now on, until it is opened."""
        self.open.clear()
        self.come.clear()

    def subjects(self) -> set[str]:
        """Of all records."""
        return set(self._records)


class Person:
    """Mei's session on one node, and how she is forgotten there."""

    def __init__(self) -> None:
        self.stream, self.vault, self.holding = Gate(), MemoryVault(), HoldingBack()
        self.store = SessionStore(self.stream, self.vault, holding=self.holding)

    async def destroy_key(self) -> None:
        await self.vault.destroy(MEI.owner, by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
        self.store.drop()

    async def forget(self) -> None:
        async with self.holding.held_back(MEI.owner):
            await self.destroy_key()
        await self.store.purge_owner("default", MEI.owner)

    async def words(self) -> list[str]:
        """What can be read of the session."""
        head = await self.store.head(MEI)
        return [] if head is None else [message.content for message in (await self.store.tail(MEI, head)).messages]


Writes = Callable[[SessionStore, Head], Coroutine[Any, Any, Any]]
SUMMARY = Summary("summary-1-1-1", 2, 1, 1, "she said a word")
WRITES: dict[str, Writes] = {
    "messages": lambda store, head: store.append(MEI, head, said(2, 3), 2_000),
    "a summary": lambda store, head: store.put_summary(MEI, SUMMARY, 2_000, head.begun),
    "a scratchpad": lambda store, head: store.note(MEI, {"current_goal": "g"}, 2_000, Noted({}, 0, 0), head.begun),
}


@pytest.mark.parametrize("what", WRITES)
async def test_what_is_being_stored_is_stored_before_the_key_is_destroyed_and_removed_with_the_rest(what: str) -> None:
    mei = Person()
    head = (await appended(mei.store, MEI, said(1))).head
    mei.stream.close_gate()
    writing = asyncio.create_task(WRITES[what](mei.store, head))
    await mei.stream.come.wait()
    forgetting = asyncio.create_task(mei.forget())
    mei.stream.open.set()
    await asyncio.gather(writing, forgetting)
    assert mei.stream.subjects() == set()
    assert await mei.words() == []


@pytest.mark.parametrize("what", WRITES)
async def test_what_comes_while_the_key_is_destroyed_is_refused(what: str) -> None:
    mei = Person()
    head = (await appended(mei.store, MEI, said(1))).head
    async with mei.holding.held_back(MEI.owner):
        writing = asyncio.create_task(WRITES[what](mei.store, head))
        await asyncio.sleep(0)
        await mei.destroy_key()
    with pytest.raises(SubjectForgotten):
        await writing
    await mei.store.purge_owner("default", MEI.owner)
    assert mei.stream.subjects() == set()


async def test_what_another_nodes_forgetting_overtakes_is_in_no_memory() -> None:
    """The key is destroyed elsewhere: this node is told, and holds nothing back."""
    mei = Person()
    head = (await appended(mei.store, MEI, said(1))).head
    mei.stream.close_gate()
    writing = asyncio.create_task(mei.store.append(MEI, head, said(2), 2_000))
    await mei.stream.come.wait()
    await mei.destroy_key()
    mei.stream.open.set()
    await writing
    assert await mei.words() == ["", ""]


async def test_what_is_being_read_while_the_key_is_destroyed_is_in_no_memory_afterwards() -> None:
    mei = Person()
    head = (await appended(mei.store, MEI, [{"id": "m-1", "role": "user", "content": "long " * 200_000}])).head
    mei.store.drop()
    mei.stream.close_gate()
    reading = asyncio.create_task(mei.store.tail(MEI, head))
    await mei.stream.come.wait()
    await mei.destroy_key()
    mei.stream.open.set()
    await reading
    assert await mei.words() == [""]
