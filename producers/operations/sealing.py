"""Sealing ledger: seals every event that holds a person's text before it is appended.

Wraps another ledger (ledger/stream.py). The persons that a text belongs to follow from the event, and for a verdict on
an item from the item as the view knows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from ledger.event import Appended, Head, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.recall import RecallServed
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.personal import about_items, has_text, looks_back, stated_persons
from ledger.privacy.sealed import ERASED
from ledger.privacy.vault import DataKey, Held, Tombstone, Vault, forgotten
from ledger.stream import Ledger

PersonsOf = Callable[[str, Sequence[str]], Awaitable[Mapping[str, Sequence[str]]]]
"""Maps a tenant and item ids to the persons that each item belongs to."""

BelongedBefore = Callable[[Sequence[NewEvent]], Awaitable[Sequence[Sequence[str]]]]
"""The persons that the text of each of these events belongs to by what was there before, which none of them says."""

Persons = tuple[str, ...]
NOBODYS: Persons = ()
NO_ITEMS: tuple[str, ...] = ()

_AT_ONCE = 1_000  # events that get their seal in one turn of the event loop; it is used while they are encoded
_MOST_SEALS = 10_000


class SealingLedger:
    """Seals text that belongs to a person, then appends it to `ledger`; reads are passed through.

    `holding` holds back what is sealed for a person who is being forgotten.
    """

    def __init__(
        self,
        ledger: Ledger,
        vault: Vault,
        persons_of: PersonsOf,
        holding: HoldingBack | None = None,
        *,
        before: BelongedBefore | None = None,
    ) -> None:
        self._ledger, self._vault, self._persons_of, self._before = ledger, vault, persons_of, before
        self._keys: dict[str, Held] = {}
        self._seals: dict[Persons, EventSeal] = {}
        self.holding = holding or HoldingBack()

    async def append(self, event: NewEvent) -> Appended:
        """See `Ledger.append`. Raises SubjectForgotten for text of a forgotten person."""
        belongs = await self._persons([event])
        persons = belongs[0]
        if not persons:
            return await self._ledger.append(event)
        await self.holding.begin(persons)
        try:
            (sealed,) = await self._sealed([event], belongs)
            return await self._ledger.append(sealed)
        finally:
            self.holding.end(persons)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """See `Ledger.append_many`. Raises SubjectForgotten; then nothing is appended."""
        belongs = await self._persons(events)
        persons = {person for each in belongs for person in each}
        if not persons:
            return await self._ledger.append_many(events)
        await self.holding.begin(persons)
        try:
            return await self._ledger.append_many(await self._sealed(events, belongs))
        finally:
            self.holding.end(persons)

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """See `Ledger.read`: the events as stored, sealed."""
        return self._ledger.read(start, follow=follow, batch=batch)

    async def head(self) -> Head:
        return await self._ledger.head()

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        return await self._ledger.last_position_of(org, entity, entity_id)

    async def next_position_of(self, org: str, entity: str, entity_id: str, after: int) -> int:
        return await self._ledger.next_position_of(org, entity, entity_id, after)

    async def close(self) -> None:
        await self._ledger.close()

    def forget(self, name: str) -> None:
        """Drop the cached key of this person, so that the vault is asked before the next sealing."""
        self._keys.pop(name, None)
        self._seals.clear()

    async def _sealed(self, events: Sequence[NewEvent], belongs: Sequence[Persons]) -> Sequence[NewEvent]:
        seals = self._seals
        result = []
        for number, (event, persons) in enumerate(zip(events, belongs, strict=True), 1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if not persons:
                result.append(event)
                continue
            seal = seals.get(persons) or await self._seal_of(persons)
            if isinstance(seal, EventSeal):
                result.append(event.sealed_by(seal))
            elif isinstance(event.fact, RecallServed):  # the search was answered; its text is not stored
                result.append(replace(event, fact=event.fact.model_copy(update={"query": ERASED})))
            else:
                raise forgotten(seal)
        return result

    async def _persons(self, events: Sequence[NewEvent]) -> list[Persons]:
        """The persons that each event's text belongs to; none where it has no text."""
        from_event: list[Persons] = []
        about: list[tuple[str, ...]] = []
        items_by_org: dict[str, set[str]] = {}
        saved: dict[tuple[str, str], Persons] = {}
        looking: dict[int, NewEvent] = {}
        for number, event in enumerate(events):
            own, items = tuple(stated_persons(event)), about_items(event)
            looks = looks_back(type(event.fact))
            if not (own or items or looks) or not has_text(event.fact):
                about.append(NO_ITEMS)
                from_event.append(NOBODYS)
                continue
            if looks:
                looking[number] = event
            from_event.append(own)
            about.append(items)
            if items:
                items_by_org.setdefault(event.org, set()).update(items)
            elif type(event.fact) is KnowledgeSaved:  # the view does not have it yet, and its first cases follow
                saved[event.org, event.entity_id] = own
        if looking and self._before is not None:
            for number, theirs in zip(looking, await self._before(list(looking.values())), strict=True):
                from_event[number] = tuple(sorted({*from_event[number], *theirs}))
        if not items_by_org:
            return from_event
        known = {org: await self._persons_of(org, sorted(ids)) for org, ids in items_by_org.items()}
        if not saved and not any(persons for items in known.values() for persons in items.values()):
            return from_event
        for number, items in enumerate(about):
            org, own = events[number].org, from_event[number]
            for item in items:
                of_item = (*known[org].get(item, ()), *saved.get((org, item), ()))
                if of_item and of_item != own:
                    own = from_event[number] = tuple(sorted({*own, *of_item}))
        return from_event

    async def _seal_of(self, persons: Persons) -> EventSeal | Tombstone:
        """The seal with the keys of all of them; the tombstone of the first one who was forgotten."""
        held = [self._keys.get(person) or await self._held(person) for person in persons]
        keys = tuple(each for each in held if isinstance(each, DataKey))
        if len(keys) < len(held):
            return next(each for each in held if isinstance(each, Tombstone))
        seal = EventSeal(keys)
        if all(self._keys.get(key.name) is key for key in keys):  # none was forgotten while another was looked up
            if len(self._seals) >= _MOST_SEALS:
                self._seals.clear()
            self._seals[persons] = seal
        return seal

    async def _held(self, name: str) -> Held:
        """The person's key, created with their first text; the tombstone of a forgotten person."""
        held = (await self._vault.look([name])).get(name) or await self._vault.obtain(name)
        self._keys[name] = held
        return held
