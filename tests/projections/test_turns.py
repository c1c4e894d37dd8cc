"""Who asks a view much keeps nobody else waiting for more than what runs, and one question of each other asker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.engine.threads.turns import Turns, asks
from projections.engine.view import READERS, Instance, View
from tests.doors.http_door import http_door
from tests.patience import comes_true
from tests.projections.empty_views import empty_view

ASKERS = st.sampled_from(["ada", "bob", "the node"])


async def takes(turns: Turns, asker: Hashable, order: list[Hashable]) -> None:
    asks(asker)
    await turns.come()
    try:
        order.append(asker)
        await asyncio.sleep(0)
    finally:
        turns.end()


@given(st.lists(ASKERS, max_size=30), st.integers(1, 4))
def test_of_those_who_wait_each_has_a_turn_before_anybody_has_two(askers: list[str], at_once: int) -> None:
    order: list[Hashable] = []

    async def ask() -> None:
        turns = Turns(at_once)
        for _ in range(at_once):
            await turns.come()
        waiting = [asyncio.create_task(takes(turns, asker, order)) for asker in askers]
        await asyncio.sleep(0)
        turns.end()  # one goes on after the other
        await asyncio.gather(*waiting)

    asyncio.run(ask())
    expected: list[str] = []
    left = list(askers)
    while left:
        expected += (round := [asker for asker in dict.fromkeys(askers) if asker in left])
        for asker in round:
            left.remove(asker)
    assert order == expected


@given(st.lists(ASKERS, min_size=1, max_size=8), st.lists(st.integers(0, 7), max_size=6))
def test_turns_that_are_given_up_at_any_moment_are_not_lost(askers: list[str], given_up: list[int]) -> None:
    async def ask() -> None:
        turns, order = Turns(2), list[Hashable]()
        tasks = [asyncio.create_task(takes(turns, asker, order)) for asker in askers]
        for number in given_up:
            await asyncio.sleep(0)
            tasks[number % len(tasks)].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        free = [asyncio.create_task(turns.come()) for _ in range(2)]
        await asyncio.sleep(0)
        assert all(task.done() for task in free)

    asyncio.run(ask())


@pytest.fixture
def view() -> Iterator[View]:
    with empty_view() as con:
        view = View(Instance(con))
        yield view
        view.close()


class Held:
    """Questions that run until they are let go."""

    def __init__(self) -> None:
        self.running = 0
        self.may_end = threading.Event()

    def __call__(self, _cursor: duckdb.DuckDBPyConnection) -> None:
        self.running += 1
        self.may_end.wait()

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.may_end.set()


def number(_cursor: duckdb.DuckDBPyConnection, number: int, order: list[int]) -> None:
    order.append(number)


async def test_a_question_comes_before_what_another_asker_has_waiting(view: View) -> None:
    held, order = Held(), list[int]()

    async def asked_by(asker: str, many: int, first: int) -> None:
        asks(asker)
        await asyncio.gather(*(view.ask(number, each, order) for each in range(first, first + many)))

    with held.until_the_end():
        running = [asyncio.create_task(view.ask(held)) for _ in range(READERS)]
        await comes_true(lambda: held.running == READERS)
        much = asyncio.create_task(asked_by("ada", 100, 0))
        await asyncio.sleep(0)
        little = asyncio.create_task(asked_by("bob", 1, 1_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await asyncio.gather(*running, much, little)
    assert len(order) == 101
    assert order.index(1_000) <= READERS + 1


async def test_a_question_that_nobody_waits_for_keeps_its_thread_until_it_ends(view: View) -> None:
    held = Held()
    with held.until_the_end():
        given_up = [asyncio.create_task(view.ask(held)) for _ in range(READERS)]
        await comes_true(lambda: held.running == READERS)
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)
        assert view.instance.in_use
        order = list[int]()
        next_one = asyncio.create_task(view.ask(number, 1, order))
    await next_one
    assert order == [1]
    await comes_true(lambda: not view.instance.in_use)


async def test_each_caller_over_http_is_an_asker(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Hashable] = []
    come = Turns.come

    async def noted(turns: Turns) -> None:
        seen.append(turns.asker())
        await come(turns)

    monkeypatch.setattr(Turns, "come", noted)
    async with http_door() as door:
        seen.clear()
        for user in ("ada", "bob"):
            assert (await door.get("/api/knowledge", headers={"X-Ledger-User": user})).status_code == 200
    assert len({each for each in seen if each is not None}) == 2
