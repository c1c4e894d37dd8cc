"""What did a caller write last? Remembered, so that the caller's reads see it without being asked to.

Each write is noted for the pair of token and caller entities, and for the token with each user and agent among them:
what `user:mei` wrote, `user:mei` with `agent:scribe` sees as well. A project, team or org alone is no such key, or
everybody in it would wait for everybody else. Served recalls are no writes of their reader: each search would wait
for the one before. The memory is the process' own, bounded, and empty after a start:
what the log held then counts as written by every reader.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from ledger.event import Appended, NewEvent
from ledger.events.knowledge import KnowledgeRated
from ledger.events.recall import RecallServed

MOST = 20_000
"""Keys that are remembered; the one that was not written under for the longest time is forgotten first."""
_PERSONAL = ("user:", "agent:")

Key = tuple[str | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes or reads: the id of the token, None without one, and the caller's entities."""

    token: str | None
    entities: tuple[str, ...]

    def remembered_as(self) -> Iterator[Key]:
        """What the writer's positions are remembered under."""
        yield self.token, tuple(sorted(self.entities))
        if len(self.entities) > 1:
            for entity in self.entities:
                if entity.startswith(_PERSONAL):
                    yield self.token, (entity,)


@dataclass(frozen=True, slots=True)
class Written:
    """The last positions of a caller's writes: of all, which the view has to have, and of those that vectors show."""

    view: int = 0
    vectors: int = 0


NOTHING = Written()
_writer: ContextVar[Writer | None] = ContextVar("writer", default=None)


def speaks(writer: Writer) -> None:
    """From here on, what this task and the tasks that it starts append is this writer's."""
    _writer.set(writer)


class OwnWrites:
    """The last writes of the callers of one node; `since` counts as written by everybody."""

    def __init__(self, most: int = MOST, *, since: Written = NOTHING) -> None:
        self._most = most
        self._since = since
        self._last: OrderedDict[Key, Written] = OrderedDict()

    def appended(self, events: Sequence[NewEvent], kept: Sequence[Appended]) -> None:
        """Note what was appended for the writer of this task, where there is one."""
        writer = _writer.get()
        if writer is None:
            return
        names = {event.fact.name for event in events}
        if names == {RecallServed.name}:
            return
        position = max(each.position for each in kept)
        shown = any(name.startswith("knowledge.") and name != KnowledgeRated.name for name in names)
        self._note(writer, Written(position, position if shown else 0))

    def answered(self, position: int) -> None:
        """Note where a write of this task's writer is kept that others appended (a model's work, an earlier try)."""
        writer = _writer.get()
        if writer is not None and self.of(writer).view < position:
            self._note(writer, Written(position, position))

    def _note(self, writer: Writer, written: Written) -> None:
        for key in writer.remembered_as():
            before = self._last.pop(key, NOTHING)
            self._last[key] = Written(max(before.view, written.view), max(before.vectors, written.vectors))
        while len(self._last) > self._most:
            self._last.popitem(last=False)

    def of(self, writer: Writer) -> Written:
        """The positions that a read of this caller has to see."""
        found = [written for key in writer.remembered_as() if (written := self._last.get(key)) is not None]
        found.append(self._since)
        return Written(max(each.view for each in found), max(each.vectors for each in found))
