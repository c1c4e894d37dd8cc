"""Holding back what is written for a person while their key is destroyed.

Who writes words of persons does so in `under_way`. A forgetting takes `held_back`: it waits for what is under way, and
what comes meanwhile waits for it. Events and the words of sessions go through the same one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager

from kledger.contract.errors import IllegalState

HELD_SECONDS = 30.0
"""How long a writer waits for a forgetting, and a forgetting for writers."""


class HoldingBack:
    """Who writes for whom on one node, and whose writers wait. Belongs to one event loop."""

    def __init__(self) -> None:
        self._held_back: set[str] = set()
        self._in_flight: dict[str, int] = {}  # how many writers of each person, where there are any
        self._change = asyncio.Event()

    @property
    def holds_anybody(self) -> bool:
        """Whether what is written for somebody waits now."""
        return bool(self._held_back)

    @asynccontextmanager
    async def held_back(self, person: str, within: float = HELD_SECONDS) -> AsyncGenerator[None, None]:
        """Hold back what is written for this person, once what is under way has ended; others' goes on.

        Raises IllegalState when that does not end `within` so many seconds, or another block holds the person back.
        Whoever writes in the meantime waits, up to HELD_SECONDS.
        """
        if person in self._held_back:
            raise IllegalState(f"{person} is being forgotten already: try again when that is done", subject=person)
        self._held_back.add(person)
        try:
            await self._until(
                lambda: person not in self._in_flight,
                within,
                f"what is being said of {person} is not stored within {within:g} s: nothing is forgotten, try again",
                person,
            )
            yield
        finally:
            self._held_back.discard(person)
            self._changed()

    @asynccontextmanager
    async def under_way(self, persons: Collection[str]) -> AsyncGenerator[None, None]:
        """Write for these persons in the block; their keys are looked up in it. Waits for a forgetting of one of them.

        No block of a writer may be within another one's. Raises IllegalState after HELD_SECONDS.
        """
        await self.begin(persons)
        try:
            yield
        finally:
            self.end(persons)

    async def begin(self, persons: Collection[str]) -> None:
        """What `under_way` begins with, for a writer that cannot pay for a context manager; `end` has to follow."""
        if held := self._held_back.intersection(persons):
            await self._until(
                lambda: self._held_back.isdisjoint(persons),
                HELD_SECONDS,
                f"{min(held)} is being forgotten, for longer than {HELD_SECONDS:g} s: nothing is stored, try again",
                min(held),
            )
        for person in persons:  # nothing was awaited since the last look
            self._in_flight[person] = self._in_flight.get(person, 0) + 1

    def end(self, persons: Collection[str]) -> None:
        """The writer has ended, well or not."""
        for person in persons:
            left = self._in_flight.pop(person) - 1
            if left:
                self._in_flight[person] = left
        if self._held_back:  # who waits for a writer holds somebody back
            self._changed()

    async def _until(self, done: Callable[[], bool], within: float, reason: str, person: str) -> None:
        try:
            async with asyncio.timeout(within):
                while not done():
                    await self._change.wait()
        except TimeoutError:
            raise IllegalState(reason, subject=person) from None

    def _changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()
