"""Does a walk through a whole list give each item once, whatever becomes of others between two pages?"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar, get_args

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.contract.errors import InvalidPayload
from kledger.contract.words import ItemSort
from ledger import one_answer
from tests.doors.http_door import ALICE, Door, furnished
from tests.doors.scripted_node import scripted_node

R = TypeVar("R")
ITEMS = [f"n-{number:02}" for number in range(14)]
SORTS = get_args(ItemSort)
ITEM = "/api/knowledge"


class OnTheLoopOfTheTest:
    """Runs what a client that waits asks for on the event loop on which the node is."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Nothing was started."""


@furnished
async def items(door: Door) -> None:
    for number, name in enumerate(ITEMS):
        await door.saved(id=name, scopes=["user:bob"])
        if number % 3 == 0:
            await change(door, name, add_helpful_case={})


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """Items of Alice's that Bob reads, some of which helped."""
    async with items() as opened:
        yield opened


async def change(door: Door, name: str, **fields: Any) -> None:
    answer = await door.put(f"{ITEM}/{name}", json=fields, headers=ALICE)
    assert answer.is_success, answer.text
    await door.desk.view.wait_for(answer.json()["position"])


async def walked(door: Door, waits: bool, between: Callable[[list[str]], Coroutine[Any, Any, None]], **how: Any) -> Any:
    """The ids that Bob gets, with something done after each of them."""
    ledger: Any = AsyncLedgerClient("http://127.0.0.1:8420")
    ledger.wire.connection.transport = HttpxTransport.over(door.client)  # in place of a socket
    seen: list[str] = []
    if not waits:
        async for item in ledger.acting_as(user="bob").iterate(**how):
            seen.append(item["id"])
            await between(seen)
        return seen
    client, runner = LedgerClient("http://127.0.0.1:8420"), OnTheLoopOfTheTest()
    client._wire, client._runner = ledger.wire, runner

    def walk() -> None:
        for item in client.acting_as(user="bob").iterate(**how):
            seen.append(item["id"])
            runner.run(between(seen))

    await asyncio.to_thread(walk)
    return seen


@pytest.mark.parametrize("waits", [False, True], ids=["async", "sync"])
@pytest.mark.parametrize("sort", SORTS)
async def test_what_never_changed_comes_once_though_items_that_were_shown_are_closed(
    door: Door, sort: str, waits: bool
) -> None:
    closed: list[str] = []

    async def close_all_shown(seen: list[str]) -> None:
        if len(seen) in (3, 9):
            closed.extend(name for name in seen if name not in closed)
            for name in closed:
                await change(door, name, scopes=["user:alice"])

    seen = await walked(door, waits, close_all_shown, page=3, sort=sort)
    assert sorted(seen) == ITEMS
    assert len(closed) == 9


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("seed", range(3))
async def test_a_walk_in_any_order_is_whole_while_items_are_closed_opened_changed_and_added(
    door: Door, sort: str, seed: int
) -> None:
    chance = random.Random(seed)
    page, touched = chance.choice([1, 2, 3, 5]), set(chance.sample(ITEMS, 6))
    for name in sorted(touched)[:2]:
        await change(door, name, scopes=["user:alice"])

    async def meddle(seen: list[str]) -> None:
        for name in chance.sample(sorted(touched), 2):
            await change(door, name, scopes=[chance.choice(["user:alice", "user:bob"])])
        if len(seen) % 4 == 0:
            await change(door, chance.choice(ITEMS), add_helpful_case={})
            await door.saved(id=f"new-{len(seen)}", scopes=["user:bob"])

    seen = await walked(door, False, meddle, page=page, sort=sort)
    assert len(seen) == len(set(seen))
    assert set(ITEMS) - touched <= set(seen) <= set(ITEMS)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("page", [1, 2, 13, 14, 15, 500])
async def test_a_list_that_nobody_changes_is_walked_in_its_order(door: Door, sort: ItemSort, page: int) -> None:
    async def nothing(seen: list[str]) -> None:
        return

    answer = await door.get(ITEM, params={"sort": sort, "limit": 100}, headers={"X-Ledger-User": "bob"})
    listed = [item["id"] for item in answer.json()["results"]]
    assert await walked(door, False, nothing, page=page, sort=sort) == listed


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("bound", [1, 1_500, 4_000])
async def test_pages_that_end_early_are_walked_to_the_end_whoever_closes_what_was_shown(
    door: Door, sort: ItemSort, bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_answer, "MOST_BYTES", bound)
    closed: list[str] = []

    async def close_the_first(seen: list[str]) -> None:
        if len(seen) == 5:
            closed.extend(seen[:3])
            for name in closed:
                await change(door, name, scopes=["user:alice"])

    assert sorted(await walked(door, False, close_the_first, page=500, sort=sort)) == ITEMS
    assert len(closed) == 3


def test_each_page_after_the_first_begins_with_the_last_item_of_the_one_before() -> None:
    with scripted_node() as node, LedgerClient(node.url) as ledger:
        for names, follows in (("ab", 2), ("bc", 3), ("c", None)):
            results = [{"id": name} for name in names]
            node.says(f"GET {ITEM}", {"results": results, "next": follows, "position": 9})
        assert "".join(item["id"] for item in ledger.iterate(page=2, sort="helpful")) == "abc"
    assert [asked.query["offset"] for asked in node.asked] == ["0", "1", "2"]
    assert [asked.query.get("as_of") for asked in node.asked] == [None, "9", "9"]


@pytest.fixture
def nowhere() -> Iterator[LedgerClient]:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        yield ledger


def test_a_page_that_is_no_number_is_refused_by_its_name(nowhere: LedgerClient) -> None:
    for lister in (nowhere, nowhere.resources):
        with pytest.raises(InvalidPayload, match=r"^page is '3', and a whole number is meant: write 3$"):
            next(lister.iterate(page="3"))  # type: ignore[arg-type]
