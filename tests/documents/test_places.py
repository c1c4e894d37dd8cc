"""Places where files are read: one of each caller, a few at once, and a queue that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from kledger.contract.errors import RateLimited
from producers.documents.places import AGAIN, MOST_OF_ONE, Places
from tests.doors.http_door import ALICE, BOB, http_door, refusal


class Readings:
    """Files that are read until they are told to end, in the order in which they began."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.began: list[str] = []
        self.ends = asyncio.Event()

    async def read(self, caller: str) -> None:
        async with self.places.of(caller):
            self.began.append(caller)
            await self.ends.wait()


@asynccontextmanager
async def reading(places: Places, *callers: str) -> AsyncIterator[Readings]:
    """The files of these callers, each as far as it comes."""
    readings = Readings(places)
    async with asyncio.TaskGroup() as group:
        for caller in callers:
            group.create_task(readings.read(caller))
        for _ in range(20):  # turns of the loop: nothing here waits for anything else
            await asyncio.sleep(0)
        try:
            yield readings
        finally:
            readings.ends.set()


async def test_the_second_file_of_a_caller_waits_and_another_callers_is_read() -> None:
    async with reading(Places(), "a", "a", "a", "b", "c") as readings:
        assert readings.began == ["a", "b"]
    assert sorted(readings.began) == ["a", "a", "a", "b", "c"]


async def test_a_caller_with_too_many_files_is_refused_and_another_is_not() -> None:
    places = Places(most_of_one=2)
    async with reading(places, "a", "a") as readings:
        with pytest.raises(RateLimited) as refused:
            await readings.read("a")
        assert refused.value.details["retry_after"] == AGAIN
        async with places.of("b"):
            pass
    async with places.of("a"):
        pass


async def test_a_full_queue_refuses_everybody_until_it_is_empty() -> None:
    places = Places(most=3)
    async with reading(places, "a", "b", "c") as readings:
        with pytest.raises(RateLimited):
            await readings.read("d")
    async with places.of("d"):
        pass


async def test_whoever_gives_up_waiting_leaves_the_queue() -> None:
    places = Places(most_of_one=2)
    async with reading(places, "a"):
        waiting = asyncio.create_task(Readings(places).read("a"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        another = asyncio.create_task(Readings(places).read("a"))
        await asyncio.sleep(0)
        assert not another.done()
        another.cancel()
        await asyncio.gather(another, return_exceptions=True)


async def test_a_document_too_many_is_answered_when_to_come_again_and_nothing_is_appended() -> None:
    async with http_door() as door, AsyncExitStack() as held:
        waiting = [
            asyncio.create_task(held.enter_async_context(door.desk.places.of("user:alice"))) for _ in range(MOST_OF_ONE)
        ]
        await waiting[0]
        answer = await door.post("/api/documents", json={"text": "What is said."}, headers=ALICE)
        refusal(answer, 429, "rate_limited")
        assert answer.headers["Retry-After"] == "5"
        assert await door.head() == 0
        other = await door.post("/api/documents", json={"text": "What is said."}, headers=BOB)
        assert other.status_code == 201, other.text
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
