"""How is a person's text kept out of the log in clear? Every event of the doors is sealed on its way there.

A ledger as `ledger/stream.py` describes it, around another one. Whose the words are follows from the event, and for
a verdict on an item from the item as the view knows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from ledger.event import Appended, Head, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.recall import RecallServed
from ledger.privacy.personal import about_item, has_text, sealed_event, stated_persons
from ledger.privacy.sealed import ERASED
from ledger.privacy.vault import DataKey, Held, Tombstone, Vault, forgotten
from ledger.stream import Ledger

PersonsOf = Callable[[str, Sequence[str]], Awaitable[Mapping[str, Sequence[str]]]]
"""Tenant and item ids to the persons that each of the items belongs to."""


_AT_ONCE = 128  # events sealed before others get their turn


class SealingLedger:
    """Seals what belongs to a person, then appends it to `ledger`; reads as that does."""

    def __init__(self, ledger: Ledger, vault: Vault, persons_of: PersonsOf) -> None:
        self._ledger, self._vault, self._persons_of = ledger, vault, persons_of
        self._keys: dict[str, Held] = {}

    async def append(self, event: NewEvent) -> Appended:
        """See `Ledger.append`. Raises SubjectForgotten for the words of a person who was forgotten."""
        (sealed,) = await self._sealed([event])
        return await self._ledger.append(sealed)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """See `Ledger.append_many`. Raises SubjectForgotten; then nothing is kept."""
        return await self._ledger.append_many(await self._sealed(events))

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """See `Ledger.read`: the events as they are kept, sealed."""
        return self._ledger.read(start, follow=follow, batch=batch)

    async def head(self) -> Head:
        """See `Ledger.head`."""
        return await self._ledger.head()

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        """See `Ledger.last_position_of`."""
        return await self._ledger.last_position_of(org, entity, entity_id)

    async def close(self) -> None:
        """See `Ledger.close`."""
        await self._ledger.close()

    def forget(self, name: str) -> None:
        """Ask the vault again before the next words of this person are sealed."""
        self._keys.pop(name, None)

    async def _sealed(self, events: Sequence[NewEvent]) -> Sequence[NewEvent]:
        belongs = await self._persons(events)
        if not any(belongs):
            return events
        result = []
        for number, (event, persons) in enumerate(zip(events, belongs, strict=True), 1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if not persons:
                result.append(event)
                continue
            held = [await self._held(person) for person in persons]
            gone = next((each for each in held if isinstance(each, Tombstone)), None)
            if gone is None:
                result.append(sealed_event(event, [each for each in held if isinstance(each, DataKey)]))
            elif isinstance(event.fact, RecallServed):  # the search was answered; its words are not kept
                result.append(replace(event, fact=event.fact.model_copy(update={"query": ERASED})))
            else:
                raise forgotten(gone)
        return result

    async def _persons(self, events: Sequence[NewEvent]) -> list[list[str]]:
        """Those that each event's words belong to; none where it has no words."""
        saved = {
            (event.org, event.entity_id): stated_persons(event)
            for event in events
            if isinstance(event.fact, KnowledgeSaved)  # the view does not know it yet, and its first cases follow
        }
        stated: list[list[str]] = []
        about: list[str | None] = []
        asked: dict[str, set[str]] = {}
        for event in events:
            words = has_text(event.fact)
            item = about_item(event) if words else None
            if item is not None:
                asked.setdefault(event.org, set()).add(item)
            about.append(item)
            own = stated_persons(event) if words else []
            stated.append(own if item is None else sorted({*own, *saved.get((event.org, item), ())}))
        known = {org: await self._persons_of(org, sorted(ids)) for org, ids in asked.items()}
        if not any(persons for items in known.values() for persons in items.values()):
            return stated
        return [
            persons if item is None else sorted({*persons, *known[event.org].get(item, ())})
            for event, persons, item in zip(events, stated, about, strict=True)
        ]

    async def _held(self, name: str) -> Held:
        """The person's key, made when it is their first word; the tombstone of one who was forgotten."""
        held = self._keys.get(name)
        if held is None:
            held = (await self._vault.look([name])).get(name)
            if held is None:
                held = await self._vault.obtain(name)
            self._keys[name] = held
        return held
