"""Cache of items for searches, so that a search queries the view only for what has changed.

A version is immutable, and the state of its item changes only when an event about an item is folded. What ranks an item
is kept apart from its texts, which are read from the file where there is no room for them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb

from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from projections.engine.view import View
from projections.fold_kit.sql_text import among
from projections.search.known import Known, Shared, State, known, states, texts, texts_of_few, version_of
from projections.search.match import Passages, passages_of

MOST = 100_000
"""Capacity, in items without their texts: some 0.7 KB each."""
MOST_TEXTS = 100 << 20
"""Capacity for versions with their texts, in bytes: some 1 KB each."""
MOST_PASSAGES = 20_000
"""Capacity for the terms of versions, in versions: some 1 KB each."""
FEW, LARGE = 8, 30_000
"""So few versions are read one by one in one statement, of a log of more than so many events."""
FILLED_AT_ONCE = 1_000
"""Items that are read in one question where all are read: some 10 ms."""
TEXTS_AT_ONCE, LONG_TEXTS = 200, 4 << 20
"""Items whose texts are read in one question, some 3 ms. Where these have more bytes, no more are read ahead: each text
may have a mebibyte."""
_REST_SECONDS = 0.01
MOST_CHANGES = 20_000
"""Changed items that are read to refresh the cache; where there are more, it begins anew."""
READ_AT_ONCE = 10_000
"""Characters whose terms are made on the event loop, and of more so many at once in a thread: a few milliseconds."""


class RememberedItems:
    """Cache of one view file's items. Its methods belong to one event loop; the file is read on a reader thread."""

    def __init__(self, view: View, most: int = MOST, most_texts: int = MOST_TEXTS) -> None:
        self._view = view
        self._most = most
        self._most_texts = most_texts
        self._filling: asyncio.Task[None] | None = None
        self._unread: int | None = 0  # the position after which items are yet to be read ahead; None where all are
        self._turn = asyncio.Lock()
        self.instance = view.instance
        """The view file; once it has been replaced, the cache must not be used any more."""
        self._upto = view.instance.position
        self._known: OrderedDict[int, Known] = OrderedDict()
        self._current: dict[tuple[str, str], int] = {}
        self._texts: OrderedDict[int, bytes] = OrderedDict()
        self._bytes = 0
        self._passages: OrderedDict[int, Passages] = OrderedDict()
        self._shared: Shared = {}
        self.reading = asyncio.Lock()
        """Held while long texts are read: whoever asks for many of them takes one thread."""

    async def active(self, org: str, positions: Sequence[int]) -> list[Known]:
        """Those of the versions made at these positions that are current, active, and of this tenant."""
        items = self._cached(positions)
        if len(items) < len(positions):
            async with self._turn:
                items = await self._refreshed(positions)
        return [each for each in items if each.status == "active" and each.org == org]

    async def learn(self, after: int, upto: int) -> None:
        """Preload the items whose versions were made between two positions, up to the cache's capacity."""
        await self._load(after, upto)
        made = f"valid_from > {int(after)} AND valid_from <= {int(upto)} AND valid_to IS NULL"
        read = await self._view.ask(texts, f"{made} ORDER BY valid_from DESC LIMIT {self._most}")
        self._hold(dict(reversed(read.items())))

    def put_off(self, after: int) -> None:
        """Leave the items that were made after a position to the next `fill`."""
        self._unread = after if self._unread is None else min(after, self._unread)

    def fill(self) -> None:
        """Begin to load what is yet to be read ahead: the latest items first, up to the cache's capacity."""
        if self._unread is None or (self._filling is not None and not self._filling.done()):
            return
        after, self._unread = self._unread, None
        filling = self._catch_up(after, self.instance.position) if after else self._fill(self.instance.position)
        self._filling = asyncio.create_task(filling, name="searched-items-fill")

    async def _catch_up(self, after: int, upto: int) -> None:
        # as in `_fill`: a search that needs one says why it cannot be loaded
        with contextlib.suppress(LedgerError, duckdb.Error, RuntimeError):
            for at in range(max(after, upto - self._most), upto, TEXTS_AT_ONCE):
                if self.instance is not self._view.instance:
                    return
                await self.learn(at, min(at + TEXTS_AT_ONCE, upto))
                await asyncio.sleep(_REST_SECONDS)

    async def _fill(self, upto: int) -> None:
        width, room = FILLED_AT_ONCE, True
        # What fails here is loaded by the search that needs it, which says why it cannot be.
        with contextlib.suppress(LedgerError, duckdb.Error, RuntimeError):
            while upto > 0 and len(self._known) < self._most and self.instance is self._view.instance:
                after = max(0, upto - width)
                items = await self._load(after, upto)
                _goes_first(self._known, items)
                if len(items) < FILLED_AT_ONCE // 2:  # most of the log is about something else
                    width *= 2
                upto = after
                await asyncio.sleep(_REST_SECONDS)
                for at in range(0, len(items), TEXTS_AT_ONCE):
                    room = room and await self._load_texts(items[at : at + TEXTS_AT_ONCE])

    async def _load(self, after: int, upto: int) -> list[Known]:
        """Keep the items whose versions were made between two positions; returns them, the latest first."""
        async with self._turn:  # a state that is read before a refresh must not be kept after it
            await self._refresh()
            items = await self._ask(
                f"v.valid_from > {int(after)} AND v.valid_from <= {int(upto)} AND v.valid_to IS NULL "
                f"ORDER BY v.valid_from DESC LIMIT {self._most}"
            )
            self._keep(items[::-1])
        return items

    async def _load_texts(self, items: Sequence[Known]) -> bool:
        """Keep the texts of a few items, the latest first; False where no more should be: they are long or too many."""
        async with self._turn:
            made = f"valid_from BETWEEN {items[-1].at} AND {items[0].at} AND valid_to IS NULL"
            read = await self._view.ask(texts, f"{made} LIMIT {TEXTS_AT_ONCE}")
            size = sum(map(len, read.values()))
            there_is_room = size <= LONG_TEXTS and self._bytes + size <= self._most_texts
            if there_is_room:
                self._hold({at: text for at, text in read.items() if at in self._known})
                _goes_first(self._texts, items)
        return there_is_room

    async def shown(self, items: Sequence[Known]) -> dict[int, JsonObject]:
        """The items as JSON, as the interfaces return them, by the position of their version."""
        made = await self._read([item.at for item in items])
        return {item.at: item.shown(version) for item in items if (version := made.get(item.at)) is not None}

    async def passages(self, items: Sequence[Known]) -> dict[int, Passages]:
        """The terms of each item's passages, by which it is matched, by the position of its version."""
        found = {each.at: kept for each in items if (kept := self._passages.get(each.at)) is not None}
        if missing := [each.at for each in items if each.at not in found]:
            made = await read_passages(await self._read(missing), self.reading)
            self._passages.update(made)
            while len(self._passages) > MOST_PASSAGES:
                self._passages.popitem(last=False)
            found |= made
        return found

    def _cached(self, positions: Sequence[int]) -> list[Known]:
        """The cached items of these versions; none if any item has changed since the cache was filled."""
        if self.instance.items_position > self._upto:
            return []
        kept = self._known
        return [kept[at] for at in positions if at in kept]

    async def _refreshed(self, positions: Sequence[int]) -> list[Known]:
        """Refresh the cache with all changed items; returns those of these versions that are still current."""
        await self._refresh()
        found = {at: item for at in positions if (item := self._known.get(at)) is not None}
        if missing := [at for at in positions if at not in found]:
            slots = among(missing)
            items = await self._ask(f"s.version_position IN ({slots}) AND v.valid_from IN ({slots})")
            self._keep(items)
            found |= {item.at: item for item in items}
        return [found[at] for at in positions if at in found]

    async def _refresh(self) -> None:
        folded, most = self.instance.items_position, min(self._most, MOST_CHANGES)
        if folded <= self._upto:
            return
        if self._known:
            changed = await self._view.ask(states, f"s.position > {self._upto} ORDER BY s.position DESC LIMIT {most}")
            if len(changed) == most:  # there may be more changes than were read
                self._known.clear()
                self._current.clear()
                self._unread = 0
            self._change(changed)
        self._upto = folded

    def _change(self, states: Sequence[State]) -> None:
        """Apply present states to the items that are kept, and evict versions that were replaced."""
        for state in states:
            at = self._current.get((state.org, state.id))
            if at == state.at:
                self._known[at] = self._known[at].in_state(state)
            elif at is not None:
                self._forget(at)

    def _keep(self, items: Sequence[Known]) -> None:
        """Store items in their present state, and evict the versions that they replace."""
        for item in items:
            before = self._current.get((item.org, item.item_id), item.at)
            if before != item.at:
                self._forget(before)
            self._known[item.at] = item
            self._current[item.org, item.item_id] = item.at
        while len(self._known) > self._most:
            _, oldest = self._known.popitem(last=False)
            del self._current[oldest.org, oldest.item_id]

    def _forget(self, at: int) -> None:
        item = self._known.pop(at)
        del self._current[item.org, item.item_id]
        self._bytes -= len(self._texts.pop(at, b""))
        self._passages.pop(at, None)

    async def _ask(self, where: str) -> list[Known]:
        if len(self._shared) > self._most:
            self._shared.clear()
        return await self._view.ask(known, where, self._shared)

    async def _read(self, positions: Sequence[int]) -> dict[int, JsonObject]:
        """The versions made at these positions, as they were made."""
        found = {at: text for at in positions if (text := self._texts.get(at)) is not None}
        if missing := [at for at in positions if at not in found]:
            if len(missing) <= FEW and self.instance.position > LARGE:
                read = await self._view.ask(texts_of_few, missing)
            else:
                read = await self._view.ask(texts, f"valid_from IN ({among(missing)})")
            self._hold(read)
            found |= read
        return {at: version_of(text) for at, text in found.items()}

    def _hold(self, read: Mapping[int, bytes]) -> None:
        for at, text in read.items():
            self._bytes += len(text) - len(self._texts.get(at, b""))
            self._texts[at] = text
        while self._bytes > self._most_texts:
            _, oldest = self._texts.popitem(last=False)
            self._bytes -= len(oldest)


def _goes_first(kept: OrderedDict[int, Any], items: Sequence[Known]) -> None:
    """Let these items make room before all others, the oldest first; they are given the latest first."""
    for item in items:
        if item.at in kept:
            kept.move_to_end(item.at, last=False)


async def read_passages(versions: Mapping[int, JsonObject], reading: asyncio.Lock) -> dict[int, Passages]:
    """The terms of the passages of versions, by their positions.

    A text of 100,000 characters takes up to a second: long ones are read in a thread, and the event loop goes on.
    """
    texts = {at: (str(version["task"]), str(version["content"])) for at, version in versions.items()}
    if not texts:
        return {}
    if sum(len(task) + len(content) for task, content in texts.values()) <= READ_AT_ONCE:
        return dict(zip(texts, passages_of(texts.values()), strict=True))
    made: dict[int, Passages] = {}
    async with reading:
        for group in _grouped(texts):
            read = await asyncio.to_thread(passages_of, [texts[at] for at in group])
            made |= zip(group, read, strict=True)
    return made


def _grouped(texts: Mapping[int, tuple[str, str]]) -> Iterator[list[int]]:
    """The texts in groups of READ_AT_ONCE characters, as many take half of the time of one after another; a longer text
    is a group of its own."""
    group: list[int] = []
    room = READ_AT_ONCE
    for at, (task, content) in texts.items():
        size = len(task) + len(content)
        if group and size > room:
            yield group
            group, room = [], READ_AT_ONCE
        group.append(at)
        room -= size
    yield group
