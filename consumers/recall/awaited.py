"""Calls of an endpoint that a reader waits for, each for no longer than a deadline.

A call that misses it goes on in the background, so that what it gives can be kept. After several failures in a row no
reader waits any more: when the pause of the circuit is over, the next call is made in the background alone, and an
answer within the deadline closes the circuit.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from kledger.contract.errors import LedgerError
from ledger.runtime.breaker import Breaker

T = TypeVar("T")

MOST_AT_ONCE = 16
"""The most calls under way; a further one is not made."""
LONGEST = 10.0
"""Seconds after which a call in the background is given up."""


class NoAnswer(Exception):
    """The endpoint gave no answer that can be used.

    `retry_after` is how many seconds it asks to be left alone; `useless` that it answered, and may be paid, with what
    cannot be used; `blamed` that it is to blame, and not what it was asked.
    """

    def __init__(
        self, reason: str, *, retry_after: float | None = None, useless: bool = False, blamed: bool = True
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.useless = useless
        self.blamed = blamed


class _Call(Generic[T]):
    """A call under way, and whether it has missed the deadline."""

    task: asyncio.Task[tuple[T | None, str | None]]
    late = False


class Awaited(Generic[T]):
    """Calls of one endpoint; `name` is how reasons speak of it, `deadline` in seconds."""

    def __init__(self, name: str, deadline: float, longest: float = LONGEST) -> None:
        self.name = name
        self.deadline = deadline
        self.breaker = Breaker()
        self.calls = 0
        """Calls made."""
        self.missed = 0
        """Readers who were answered without it."""
        self.seconds = 0.0
        """Time that calls took, all together."""
        self._longest = max(longest, deadline)
        self._pending: dict[Hashable, _Call[T]] = {}

    async def answer(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> tuple[T | None, str | None]:
        """What `call` gives within the deadline, or why there is nothing. A call of the same key is shared.

        `call` raises NoAnswer; what else it raises counts as a failure of the endpoint.
        """
        value, reason = await self._answer(key, call)
        self.missed += reason is not None
        return value, reason

    async def _answer(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> tuple[T | None, str | None]:
        if (broken := self.breaker.reason) is not None:
            if self.breaker.due() == 0 and not self._pending:
                self._begin(key, call)
            return None, broken
        under_way = self._pending.get(key)
        if under_way is None:
            if len(self._pending) >= MOST_AT_ONCE:
                return None, f"{MOST_AT_ONCE} calls wait for {self.name} already"
            under_way = self._begin(key, call)
        done, _ = await asyncio.wait({under_way.task}, timeout=self.deadline)  # a reader who leaves ends no call
        return under_way.task.result() if done else (None, self._is_late(under_way))

    def _begin(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> _Call[T]:
        begun: _Call[T] = _Call()
        begun.task = asyncio.create_task(self._made(call, begun), name=f"{self.name}-call")
        self._pending[key] = begun
        begun.task.add_done_callback(lambda _: self._pending.pop(key, None))
        return begun

    def _is_late(self, under_way: _Call[T]) -> str:
        """Count a call that misses the deadline against the endpoint, once; the reason."""
        reason = f"{self.name} did not answer within {self.deadline:g} s"
        if not under_way.late:
            under_way.late = True
            self.breaker.failed(reason)
        return reason

    async def _made(self, call: Callable[[], Awaitable[T]], own: _Call[T]) -> tuple[T | None, str | None]:
        """Make a call, and count it for or against the endpoint, once, however many readers wait."""
        self.calls += 1
        began = time.perf_counter()
        made = asyncio.ensure_future(call())
        try:
            done, _ = await asyncio.wait({made}, timeout=self.deadline)
            if not done:
                reason = self._is_late(own)
                done, _ = await asyncio.wait({made}, timeout=self._longest - self.deadline)
                if not done:
                    return None, reason
            value = made.result()
        except NoAnswer as failure:
            if failure.blamed and not own.late:
                self.breaker.failed(failure.reason, failure.retry_after, useless=failure.useless)
            return None, failure.reason
        except Exception as error:
            reason = error.message if isinstance(error, LedgerError) else f"{self.name}: {type(error).__name__}"
            if not own.late:
                self.breaker.failed(reason)
            return None, reason
        finally:
            self.seconds += time.perf_counter() - began
            if not made.done():
                made.cancel()
        if not own.late:
            self.breaker.succeeded()
        return value, None

    async def close(self) -> None:
        """Cancel all calls."""
        left = [each.task for each in self._pending.values()]
        for task in left:
            task.cancel()
        with contextlib.suppress(Exception):
            await asyncio.gather(*left, return_exceptions=True)
