"""Two requests at once: a rival's whole request comes between any two things that another one asks of log and view.

Where the rival comes is counted, not timed, so that a test tries every moment and finds the same each time. A rival
that has to wait for its turn until the request is done is answered after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpx

from producers.operations.desk import Desk
from producers.operations.models import evolutions
from tests.doors.http_door import Door

Request = Callable[[str], Awaitable[httpx.Response]]
"""A request about what has this name."""
Row = tuple[Any, ...]
LOG, VIEW = ("append", "append_many", "last_position_of", "head"), ("ask",)
_COUNTED: ContextVar[bool] = ContextVar("counted", default=False)


@dataclass(frozen=True, slots=True)
class Met:
    """What became of two requests about `name`; `before` is the head of the log from before both."""

    name: str
    before: int
    told: httpx.Response
    rival: httpx.Response


class _Moment:
    """Has a rival come right before the asking number `at`."""

    def __init__(self, at: int, rival: Callable[[], Awaitable[httpx.Response]]) -> None:
        self._left, self._rival = at, rival
        self._waits = asyncio.Event()
        self._coming: asyncio.Task[httpx.Response] | None = None

    async def comes(self) -> None:
        if not _COUNTED.get():
            return
        self._left -= 1
        if self._left == 0:
            counted = _COUNTED.set(False)
            try:
                self._coming = asyncio.create_task(self._told())
            finally:
                _COUNTED.reset(counted)
            waits = asyncio.create_task(self._waits.wait())
            await asyncio.wait({self._coming, waits}, return_when=asyncio.FIRST_COMPLETED)
            waits.cancel()

    async def answer(self) -> httpx.Response | None:
        """What the rival was told; None when it did not come."""
        return None if self._coming is None else await self._coming

    def waits(self) -> None:
        """Let the request go on: the rival waits for it."""
        self._waits.set()

    async def _told(self) -> httpx.Response:
        return await self._rival()


async def at_every_moment(
    door: Door, begin: Callable[[str], Awaitable[Any]], request: Request, rival: Request
) -> AsyncIterator[Met]:
    """For each moment of `request`: what `begin` made of a name of its own, after the request and its rival."""
    for at in range(1, 100):
        name = f"thing-{at}"
        await begin(name)
        before = await door.head()
        await door.desk.view.wait_for(before)
        moment = _Moment(at, lambda about=name: rival(about))  # type: ignore[misc]
        with _watched(door, moment):
            counted = _COUNTED.set(True)
            try:
                told = await request(name)
            finally:
                _COUNTED.reset(counted)
            answer = await moment.answer()
        if answer is None:
            assert at > 1, "the request asks nothing of log and view"
            return
        assert max(told.status_code, answer.status_code) < 500, (told.text, answer.text)
        yield Met(name, before, told, answer)
    raise AssertionError("the request does not come to its end")


@contextmanager
def _watched(door: Door, moment: _Moment) -> Iterator[None]:
    watched: list[tuple[Any, str]] = []

    def watch(of: Any, name: str) -> None:
        inner = getattr(of, name)

        async def asked(*args: Any, **kwargs: Any) -> Any:
            await moment.comes()
            return await inner(*args, **kwargs)

        setattr(of, name, asked)
        watched.append((of, name))

    turn_of = evolutions.turn_of

    def turn(desk: Desk, process_id: str) -> asyncio.Lock:
        lock = turn_of(desk, process_id)
        if lock.locked():
            moment.waits()
        return lock

    evolutions.turn_of = turn
    for name in LOG:
        watch(door.desk.ledger, name)
    for name in VIEW:
        watch(door.desk.view, name)
    try:
        yield
    finally:
        evolutions.turn_of = turn_of
        for of, name in watched:
            delattr(of, name)


async def rows(door: Door, query: str, *values: Any) -> list[Row]:
    """Rows of the view, once it has everything."""
    await door.desk.view.wait_for(await door.head())
    found: list[Row] = await door.desk.view.ask(lambda cursor: cursor.execute(query, list(values)).fetchall())
    return found


async def refused_since(door: Door, position: int) -> list[Row]:
    """The events that do not count, after this position."""
    return await rows(door, "SELECT subject, code, reason FROM refused_events WHERE position > ?", position)
