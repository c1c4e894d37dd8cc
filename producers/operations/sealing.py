"""Sealing ledger: seals every event that holds a person's text before it is appended.

Wraps another ledger (ledger/stream.py:ChangingLedger). The persons that a text belongs to follow from the event, and
for a verdict on an item from the item as the view knows it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from ledger.event import Appended, Head, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.recall import RecallServed
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.sealed import ERASED
from ledger.privacy.vault import DataKey, Held, Tombstone, Vault, forgotten
from ledger.privacy.whose_text import NOBODYS, Persons, has_text, holding, joined, stated_persons
from ledger.stream import ChangingLedger

PersonsOf = Callable[[str, Sequence[str]], Awaitable[Mapping[str, Sequence[str]]]]
"""Maps a tenant and item ids to the persons that each item belongs to."""

BelongedBefore = Callable[[Sequence[NewEvent]], Awaitable[Sequence[Sequence[str]]]]
"""The persons that the text of each of these events belongs to by what was there before, which none of them says."""

_MOST_SEALS = 10_000

OfItems = dict[tuple[str, str], Persons]
"""The persons of items, by tenant and id."""


class SealingLedger:
    """Seals text that belongs to a person, then appends it to `ledger`; reads are passed through.

    `holding` holds back what is sealed for a person who is being forgotten.
    """

    def __init__(
        self,
        ledger: ChangingLedger,
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
        (persons,) = await self._persons([event], {})
        if not persons:
            return await self._ledger.append(event)
        await self.holding.begin(persons)
        try:
            return await self._ledger.append(await self._sealed(event, persons))
        finally:
            self.holding.end(persons)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """See `Ledger.append_many`. Raises SubjectForgotten as well; then nothing of that batch is appended.

        An event is looked at and gets its seal right before it is encoded: in two passes over many, each has to fetch
        them from memory.
        """
        begun: set[str] = set()
        saved: OfItems = {}

        async def sealed(piece: Sequence[NewEvent]) -> Sequence[NewEvent]:
            belongs = await self._persons(piece, saved)
            if new := set(chain.from_iterable(belongs)) - begun:
                await self.holding.begin(new)
                begun.update(new)
            seals, result = self._seals, list[NewEvent]()
            for event, persons in zip(piece, belongs, strict=True):
                if persons:
                    seal = seals.get(persons)  # looked up here, as most are known: a coroutine for each is seen
                    event = event.sealed_by(seal) if seal is not None else await self._sealed(event, persons)
                result.append(event)
            return result

        if self.holding.holds_anybody:  # it waits before anything is sent, as few lists may be under way
            everybody = set(chain.from_iterable(await self._persons(events, {})))
            await self.holding.begin(everybody)
            begun.update(everybody)
        try:
            return await self._ledger.append_changed(events, sealed)
        finally:
            self.holding.end(begun)

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

    async def _sealed(self, event: NewEvent, persons: Persons) -> NewEvent:
        seal = self._seals.get(persons) or await self._seal_of(persons)
        if isinstance(seal, EventSeal):
            return event.sealed_by(seal)
        if isinstance(event.fact, RecallServed):  # the search was answered; its text is not stored
            return replace(event, fact=event.fact.model_copy(update={"query": ERASED}))
        raise forgotten(seal)

    async def _persons(self, events: Sequence[NewEvent], saved: OfItems) -> list[Persons]:
        """The persons that each event's text belongs to; none where it has no text.

        `saved` has the persons of the items that events before these saved, and gets those of these.
        """
        belongs: list[Persons] = []
        about: dict[int, tuple[str, ...]] = {}
        looking: dict[int, NewEvent] = {}
        for number, event in enumerate(events):
            fact, persons = event.fact, stated_persons(event)
            held = holding(type(fact))
            if not (persons or held.items or held.looks_back) or not has_text(fact):
                persons = NOBODYS
            else:
                if held.items is not None:
                    about[number] = held.items(event)
                if held.looks_back:
                    looking[number] = event
                if type(fact) is KnowledgeSaved:  # the view does not have it yet, and its first cases follow
                    saved[event.org, event.entity_id] = persons
            belongs.append(persons)
        if looking and self._before is not None:
            for number, theirs in zip(looking, await self._before(list(looking.values())), strict=True):
                belongs[number] = joined(belongs[number], theirs)
        if about:
            known = await self._of_items(events, about)
            for number, items in about.items():
                for item in [(events[number].org, each) for each in items]:
                    belongs[number] = joined(joined(belongs[number], known.get(item, ())), saved.get(item, ()))
        return belongs

    async def _of_items(self, events: Sequence[NewEvent], about: Mapping[int, tuple[str, ...]]) -> OfItems:
        """The persons, as the view knows them, of the items that events are about."""
        asked: dict[str, set[str]] = {}
        for number, items in about.items():
            asked.setdefault(events[number].org, set()).update(items)
        known: OfItems = {}
        for org, ids in asked.items():
            known |= {(org, item): tuple(theirs) for item, theirs in (await self._persons_of(org, sorted(ids))).items()}
        return known

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
