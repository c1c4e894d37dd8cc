"""Results of recalls, kept for five minutes: for the same caller, question and settings, while no item has changed.

What is kept is what was found, before the session and the record: a repeated recall is recorded like any other, and
leaves out what its session holds by now. It ends with the first short memory that is over. Nothing is kept where the
vectors lag behind, or where the answer lacked a part of the node.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock

from ledger.event import JsonObject

SECONDS = 300.0
MOST = 500
"""Recalls that are kept at once."""
MOST_CHARACTERS = 32_000_000
"""Characters of content that all of them have together; one that has a tenth of it is not kept."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a recall found, and by what state of the items; `ends` is when it is over, by the clock of the cache."""

    state: Hashable
    ends: float
    found: JsonObject
    characters: int


class RecallCache:
    """The recalls of one node."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._characters = 0
        self._changing = Lock()
        self.hits = 0
        self.misses = 0

    def get(self, key: Hashable, state: Hashable | None) -> JsonObject | None:
        """What was found for this key by this state of the items; None where nothing is kept, or it is over."""
        with self._changing:
            kept = self._kept.get(key)
            if kept is not None and state is not None and kept.state == state and self._clock() < kept.ends:
                self._kept.move_to_end(key)
                self.hits += 1
                return kept.found
            self._drop(key)
            self.misses += 1
            return None

    def put(self, key: Hashable, state: Hashable, found: JsonObject, lives: float) -> None:
        """Keep what was found, for so many seconds at most."""
        characters = sum(len(item["content"]) for item in found["results"])
        if characters > MOST_CHARACTERS // 10:
            return
        with self._changing:
            self._drop(key)
            self._kept[key] = Kept(state, self._clock() + min(SECONDS, lives), found, characters)
            self._characters += characters
            while len(self._kept) > MOST or self._characters > MOST_CHARACTERS:
                self._drop(next(iter(self._kept)))

    def forget(self) -> None:
        """Drop everything; on any thread."""
        with self._changing:
            self._kept.clear()
            self._characters = 0

    def _drop(self, key: Hashable) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._characters -= kept.characters
