"""The asynchronous and the synchronous face of one endpoint.

An endpoint is written once, as an async function whose first argument is the wire. `Endpoint` binds it to a
client: on the async face the call gives the coroutine, on the sync face it gives the result, computed on an
event loop that the client runs on a thread of its own (so it also works inside a running loop: a notebook).
"""

from __future__ import annotations

import asyncio
import copy
import functools
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from kledger.client.arguments import refusing_slips, require_list
from kledger.client.wire import Lineage, Wire
from kledger.contract.language import Language
from kledger.contract.scopes import Caller, check_name

P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound="_Face")


class _Face:
    """What both faces can do: speak for somebody, within a trace, and with a view that is fresh enough."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _through(self, wire: Wire) -> Self:
        derived = copy.copy(self)
        derived._wire = wire
        return derived

    def acting_as(
        self,
        *,
        user: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        team: str | None = None,
        org: str | None = None,
        scopes: Sequence[str] = (),
    ) -> Self:
        """A client over the same connection that speaks for exactly these; with none, for the operator.

        `scopes` are further entities, of registered types too: `["department:finance"]`. Raises IllegalScope for an
        id that no entity can have, or that is no name alone (`user:ann`, `ann,bob`, an empty text: None names nobody),
        InvalidPayload for scopes that are no list.
        """
        require_list("scopes", scopes)
        named = {"user": user, "agent": agent, "project": project, "team": team, "org": org}
        for kind, name in named.items():
            if name is not None:
                check_name(kind, name)
        caller = Caller(user=user, agent=agent, project=project, team=team, org=org, further=tuple(scopes))
        return self._through(replace(self._wire, caller=caller))

    def within(
        self,
        *,
        trace_id: str | None = None,
        message_id: str | None = None,
        causation_id: str | None = None,
        correlation_id: str | None = None,
        traceparent: str | None = None,
    ) -> Self:
        """A client over the same connection whose writes and recalls carry this lineage."""
        lineage = Lineage(trace_id, message_id, causation_id, correlation_id, traceparent)
        return self._through(replace(self._wire, lineage=lineage))

    def seeing(self, position: int, *, wait: float | None = None) -> Self:
        """A client whose reads wait until the view has `position` (what another writer told), `wait` seconds.

        ViewBehind when it does not get there in time.
        """
        return self._through(replace(self._wire, at_least=position, wait=wait))

    def in_language(self, language: Language | None) -> Self:
        """A client whose texts (of a start, a goal, a prompt) are in this language, unless a call names another.

        None leaves it to the node.
        """
        return self._through(replace(self._wire, language=language))

    @property
    def wire(self) -> Wire:
        """What its calls speak through."""
        return self._wire

    @property
    def written(self) -> int:
        """The highest position that was written over this connection, 0 before any."""
        return self._wire.connection.written


class AsyncFace(_Face):
    """Calls are awaited."""


class SyncFace(_Face):
    """Calls return their result."""

    def __init__(self, wire: Wire, portal: Portal) -> None:
        super().__init__(wire)
        self._portal = portal


class Endpoint(Generic[P, R]):
    """One endpoint of the node, bound to whichever face it is read from."""

    def __init__(self, function: Callable[Concatenate[Wire, P], Coroutine[Any, Any, R]]) -> None:
        self.function = function
        self._checked = refusing_slips(function)
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, face: None, owner: type) -> Self: ...
    @overload
    def __get__(self, face: AsyncFace, owner: type) -> Callable[P, Coroutine[Any, Any, R]]: ...
    @overload
    def __get__(self, face: SyncFace, owner: type) -> Callable[P, R]: ...

    def __get__(self, face: AsyncFace | SyncFace | None, owner: type) -> Any:
        if face is None:
            return self
        bound = MethodType(self._checked, face._wire)
        if isinstance(face, AsyncFace):
            return bound
        portal = face._portal
        return functools.wraps(bound)(lambda *args, **kwargs: portal.run(bound(*args, **kwargs)))


class Portal:
    """An event loop on a thread of its own, started with the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` to its end and return what it returns; an interrupt cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run_and_close, args=(self._loop,), daemon=True, name="kledger-client").start()
            return self._loop

    def close(self) -> None:
        """Stop the loop; a later call starts a new one."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)


def _run_and_close(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
