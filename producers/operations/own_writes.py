"""Read-your-writes: the last positions of each caller's writes, so that their reads wait for them unasked.

Each write is noted for the pair of token and caller entities, and for the token with each user and agent among them:
what `user:mei` wrote, `user:mei` with `agent:scribe` sees as well. A project, team or org alone is no such key, or
everybody in it would wait for everybody else. Served recalls do not count as writes of their reader: each search would
wait for the one before. The positions are kept in memory, bounded, and lost at a restart: what the log held at the
start counts as written by every reader.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import NamedTuple

from ledger.event import Appended, NewEvent
from ledger.events.knowledge import KnowledgeRated
from ledger.events.recall import RecallServed

MOST = 20_000
"""Most keys kept; the least recently written one is evicted first."""
_PERSONAL = ("user:", "agent:")

Key = tuple[str | None, tuple[str, ...]]


class Writer(NamedTuple):
    """A writing or reading caller: the id of the token, None without one, and the caller's entities."""

    token: str | None
    entities: tuple[str, ...]

    def remembered_as(self) -> Sequence[Key]:
        """The keys of the writer's positions."""
        return _keys(self.token, self.entities)


@lru_cache(maxsize=1_000)
def _keys(token: str | None, entities: tuple[str, ...]) -> Sequence[Key]:
    alone = [(token, (each,)) for each in entities if each.startswith(_PERSONAL)] if len(entities) > 1 else []
    return (token, tuple(sorted(entities))), *alone


class Written(NamedTuple):
    """The last positions of a caller's writes: of all (`view`), and of those that reach the vectors (`vectors`)."""

    view: int = 0
    vectors: int = 0


NOTHING = Written()
_writer: ContextVar[Writer | None] = ContextVar("writer", default=None)


def speaks(writer: Writer) -> None:
    """Attribute what this task and its child tasks append from now on to `writer`."""
    _writer.set(writer)


class OwnWrites:
    """The last writes of the callers of one node; `since` counts as written by everybody."""

    def __init__(self, most: int = MOST, *, since: Written = NOTHING) -> None:
        self._most = most
        self._since = since
        self._last: OrderedDict[Key, Written] = OrderedDict()

    def appended(self, events: Sequence[NewEvent], acknowledged: Sequence[Appended]) -> None:
        """Note appended events for the writer of this task, where there is one."""
        writer = _writer.get()
        if writer is None:
            return
        names = {event.fact.name for event in events}
        if names == {RecallServed.name}:
            return
        position = max([each.position for each in acknowledged])
        self._note(writer, Written(position, position if any(map(_reaches_vectors, names)) else 0))

    def answered(self, position: int) -> None:
        """Note the position of a write of this task's writer that others appended (a model's work, an earlier try)."""
        writer = _writer.get()
        if writer is not None and self.of(writer).view < position:
            self._note(writer, Written(position, position))

    def saw(self, position: int) -> None:
        """Note that this task's reader has seen what is at a position: what they read or search next is no older."""
        writer = _writer.get()
        if writer is not None and self.of(writer).vectors < position:  # they may have judged something since
            self._note(writer, Written(position, position))

    def _note(self, writer: Writer, written: Written) -> None:
        for key in writer.remembered_as():
            before = self._last.pop(key, NOTHING)
            self._last[key] = Written(max(before.view, written.view), max(before.vectors, written.vectors))
        while len(self._last) > self._most:
            self._last.popitem(last=False)

    def of(self, writer: Writer) -> Written:
        """The positions that a read of this caller has to reach."""
        view, vectors = self._since
        for key in writer.remembered_as():
            if (written := self._last.get(key)) is not None:
                view, vectors = max(view, written.view), max(vectors, written.vectors)
        return Written(view, vectors)


@cache
def _reaches_vectors(name: str) -> bool:
    return name.startswith("knowledge.") and name != KnowledgeRated.name
