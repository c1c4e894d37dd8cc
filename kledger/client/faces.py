"""The asynchronous and the synchronous face of one endpoint.

An endpoint is written once, as an async function whose first argument is the wire. `Endpoint` binds it to a
client: on the async face the call gives the coroutine, on the sync face it gives the result, also inside a running
loop, as in a notebook. Where the connection is over sockets, the caller's thread computes it and waits; else it is
computed on an event loop that the client runs on a thread of its own.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from kledger.client.arguments import (
    refusing_slips,
    require_list,
    require_number,
    require_one_of,
    require_seconds,
    require_text,
    said_of,
)
from kledger.client.slips.other_names import called_otherwise, telling_what_it_takes
from kledger.client.wire import Lineage, Wire
from kledger.contract.errors import IllegalScope
from kledger.contract.language import LANGUAGES, Language
from kledger.contract.scopes import Caller, check_name

if TYPE_CHECKING:
    from inspect import Signature

P = ParamSpec("P")
R = TypeVar("R")


class _Face:
    """What both faces can do: speak for somebody, within a trace, and with a view that is fresh enough."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    if not TYPE_CHECKING:  # to a checker a name that is not there is an error already
        __getattr__ = called_otherwise

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._wire.told()}>"

    def _through(self, wire: Wire) -> Self:
        derived = copy.copy(self)
        derived._wire = wire
        return derived

    @telling_what_it_takes
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
                if not isinstance(name, str | int | float):
                    raise IllegalScope(f"the {kind} is {said_of(name)}, and a text is meant", errors=[])
                check_name(kind, name)
        caller = Caller(user=user, agent=agent, project=project, team=team, org=org, further=tuple(scopes))
        return self._through(replace(self._wire, caller=caller))

    @telling_what_it_takes
    def within(
        self,
        *,
        trace_id: str | None = None,
        message_id: str | None = None,
        causation_id: str | None = None,
        correlation_id: str | None = None,
        traceparent: str | None = None,
    ) -> Self:
        """A client over the same connection whose writes and recalls carry this lineage.

        Raises InvalidPayload for what is no text.
        """
        named = {"trace_id": trace_id, "message_id": message_id, "causation_id": causation_id}
        named |= {"correlation_id": correlation_id, "traceparent": traceparent}
        for name, value in named.items():
            if value is not None:
                require_text(name, value)
        lineage = Lineage(trace_id, message_id, causation_id, correlation_id, traceparent)
        return self._through(replace(self._wire, lineage=lineage))

    def seeing(self, position: int, *, wait: float | None = None) -> Self:
        """A client whose reads wait until the view has `position` (what another writer told), `wait` seconds.

        ViewBehind when it does not get there in time. Raises InvalidPayload for what is no number.
        """
        require_number("position", position)
        if wait is not None:
            require_seconds("wait", wait)
        return self._through(replace(self._wire, at_least=position, wait=wait))

    def in_language(self, language: Language | None) -> Self:
        """A client whose texts (of a start, a goal, a prompt) are in this language, unless a call names another.

        None leaves it to the node. Raises InvalidPayload for one in which there are no texts.
        """
        if language is not None:
            require_one_of(LANGUAGES, "language", language)
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


class Runner(Protocol):
    """Runs coroutines for callers that do not await."""

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` to its end and return what it returns."""

    def close(self) -> None:
        """End what it has started."""


class SyncFace(_Face):
    """Calls return their result."""

    def __init__(self, wire: Wire, runner: Runner) -> None:
        super().__init__(wire)
        self._runner = runner


class Endpoint(Generic[P, R]):
    """One endpoint of the node, bound to whichever face it is read from."""

    def __init__(self, function: Callable[Concatenate[Wire, P], Coroutine[Any, Any, R]]) -> None:
        self.function = function
        self._checked = refusing_slips(function, lambda: self.__name__)
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        if vars(owner).get(self.function.__name__) is not self:  # else this is another name of it
            self.__name__ = name

    def __call__(self, face: AsyncFace | SyncFace, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Called in the class, as a method is: with the client as the first argument."""
        return self.__get__(face, type(face))(*args, **kwargs)

    @property
    def __signature__(self) -> Signature:
        """What it takes, for `help(LedgerClient.search)`."""
        from inspect import Parameter, Signature, signature

        taken = signature(self.function)
        wire, *others = taken.parameters.values()
        face = wire.replace(name="self", annotation=Parameter.empty)
        return Signature([face, *others], return_annotation=taken.return_annotation)

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
        runner = face._runner
        return functools.wraps(bound)(lambda *args, **kwargs: runner.run(bound(*args, **kwargs)))
