"""What the log has and the view does not yet: the events between the two, by the item that they are about.

A read of one item at a position need not wait for a fold where the view has the item as it is at that position (no
event in between is about it), or where the item is new and its save alone is in between. Such a save is certain to
count: its ids are new (projections/fold_kit/identities.py), and the gate's own rules judge it
(projections/engine/ahead/just_saved.py). In all other cases the read waits. A list need not wait where all that is in
between about items are such saves (projections/engine/ahead/new_in_list.py). Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import orjson

from kledger.contract.errors import IllegalSubject
from ledger.event import StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.recall import RecallServed
from ledger.store.parked import Parked
from ledger.wire.subjects import decode_token, encode_token
from projections.fold_kit.identities import Identities
from projections.views.events.keys import key_of

A_FEW = 64
"""Events that arrive at once and are looked at one by one; what comes in bulk is soon folded."""
MOST_BYTES = 64 * 1024
_ITEM, _SAVED = KnowledgeSaved.entity(), KnowledgeSaved.verb()
_RECALL = RecallServed.entity()
# Events of these entities change no item but the one that they are about.
_ONE_BY_ONE = frozenset({_ITEM, _RECALL, "goal", "profile", "session"})

Key = tuple[str, str]
"""Tenant and id of an item, as tokens of a subject."""


class Untouched(Enum):
    """The view has the item as it is at the position."""

    UNTOUCHED = "untouched"


UNTOUCHED = Untouched.UNTOUCHED


class _Between(NamedTuple):
    position: int
    identity: int
    about: Key | None


class _Item(NamedTuple):
    last: int
    save: StoredEvent | None
    """Its save, where that is certain to be accepted, and all that is in between about it."""


class Saves(NamedTuple):
    """The saves of items that are all there is in between about any item, in their order."""

    events: list[StoredEvent]
    recalled: bool
    """Whether there are recalls in between as well."""


class Ahead:
    """The events that have arrived and are not folded, as far as they are looked at."""

    def __init__(self) -> None:
        self.upto = 0
        """The last position that has arrived."""
        self._unseen = 0  # up to here an event may have gone by unseen, so that nothing is certain before it is folded
        self._arrived: deque[StoredEvent] = deque()  # not looked at yet: most are folded before anybody reads ahead
        self._known: Identities | None = None
        self._between: deque[_Between] = deque()
        self._identities: set[int] = set()
        self._items: dict[Key, _Item] = {}
        self._recalled = 0  # the last recall that was seen
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def begin(self, folded: int) -> None:
        """A reading of the log begins, after what is folded."""
        if self.upto < folded:
            self.unsure()
            self.upto = folded

    def unsure(self) -> None:
        """Forget all that is in between: what it makes of an item shows once it is folded."""
        self._unseen = max(self._unseen, self.upto)
        self._arrived.clear()
        self._between.clear()
        self._identities.clear()
        self._items.clear()

    def arrived(self, events: Sequence[StoredEvent], folded: int, known: Identities | None, parked: Parked) -> None:
        """Take events that have arrived, while the view is at `folded` and has the ids in `known`."""
        fresh = [event for event in events if event.position > self.upto]
        if not fresh:
            return
        before, self.upto = self.upto, fresh[-1].position
        seen = len(fresh) <= A_FEW and fresh[0].position == before + 1 and known is not None
        if not seen or (parked and any(event.position in parked for event in fresh)):
            self.unsure()
        else:
            self._drop(folded)
            self._arrived += fresh
        self._known = known
        for waiting in [each for each in self._waiting if each[0] <= self.upto]:
            if not waiting[1].done():
                waiting[1].set_result(None)

    def _look(self, folded: int) -> None:
        """Look at what has arrived and is not folded, for a read."""
        self._drop(folded)
        if not self._arrived:
            return
        known = self._known
        if known is None or known.upto < folded:
            self.unsure()
            return
        while self._arrived:
            self._look_at(self._arrived.popleft(), known)

    def _look_at(self, event: StoredEvent, known: Identities) -> None:
        """Note what an event is about. Where that cannot be told, nothing is sure until it is folded."""
        tokens = event.subject.split(".")
        try:
            _, org, entity, entity_id, verb, _, _ = tokens
            if entity not in _ONE_BY_ONE or len(event.body) > MOST_BYTES:
                raise ValueError(entity)
            identity = key_of(orjson.loads(event.body)["id"])
            about = (org, entity_id) if entity == _ITEM else None
            if entity == _RECALL:
                self._recalled = event.position
            if about is not None:
                new = (
                    about not in self._items
                    and verb == _SAVED
                    and identity not in self._identities
                    and not known.may_have(identity)
                    and not known.may_have(key_of(decode_token(entity_id)))
                )
                self._items[about] = _Item(event.position, event if new else None)
        except (IllegalSubject, ValueError, LookupError, TypeError, AttributeError):
            self._unseen = event.position
            return
        self._identities.add(identity)
        self._between.append(_Between(event.position, identity, about))

    def _drop(self, folded: int) -> None:
        """Forget what is folded."""
        while self._arrived and self._arrived[0].position <= folded:
            self._arrived.popleft()
        while self._between and self._between[0].position <= folded:
            _, identity, about = self._between.popleft()
            self._identities.discard(identity)  # the view's own have it by now
            if about is not None and (item := self._items.get(about)) is not None and item.last <= folded:
                del self._items[about]

    def of(self, org: str, item_id: str, position: int, folded: int) -> StoredEvent | Untouched | None:
        """The save of an item that is all there is in between about it; UNTOUCHED where there is nothing.

        None where the read at `position` has to wait until the view, which is at `folded`, has it.
        """
        self._look(folded)
        if position > self.upto or self._unseen > folded:
            return None
        item = self._items.get((encode_token(org), encode_token(item_id)))
        if item is None or item.last <= folded:
            return UNTOUCHED
        return item.save

    def saves(self, org: str, position: int, folded: int) -> Saves | None:
        """The saves in between, where they are all there is about items of a tenant up to the last that has arrived.

        None where a list at `position` has to wait until the view, which is at `folded`, has it.
        """
        self._look(folded)
        if position > self.upto or self._unseen > folded:
            return None
        tenant, events = encode_token(org), []
        for (its_org, _), item in self._items.items():  # in the order of their saves, where they are nothing but saved
            if its_org == tenant and item.last > folded:
                if item.save is None:
                    return None
                events.append(item.save)
        return Saves(events, self._recalled > folded)

    async def until(self, position: int, within: float) -> None:
        """Wait until a position has arrived, for so many seconds at the most."""
        if position <= self.upto or within <= 0:
            return
        waiting = (position, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await waiting[1]
        finally:
            self._waiting.remove(waiting)
