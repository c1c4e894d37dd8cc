"""Sizes of a node: bytes of its directories on disk, and of the events' data by entity.

For events in the log only the data counts, without envelopes and headers. A view that was never counted is counted in
steps, so that no answer waits for a large log: `counted_to` is the position reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from pathlib import Path

from ledger.event import JsonObject
from projections.engine.view import View
from projections.views.events.sizes import event_bytes

DIRECTORIES = ("broker", "archive", "views", "vectors", "snapshots")
STEP = 200_000
"""Events counted per step."""
_BLOCK = 512
"""Bytes of a block in `st_blocks`, independent of the file system."""
GOOD_FOR = 5.0
"""Seconds for which a measurement is reused."""


class NodeSizes:
    """Sizes of one node, measured on request."""

    def __init__(self, data: Path, view: View) -> None:
        self._data = data
        self._view = view
        self._events: Counter[str] = Counter()
        self._counted_to = 0
        self._measured_at = float("-inf")
        self._parts: dict[str, int] = {}
        self._turn = asyncio.Lock()

    async def now(self) -> JsonObject:
        """`parts`: bytes on disk by directory; `events`: bytes of event data by entity, up to `counted_to`."""
        async with self._turn:
            if time.monotonic() - self._measured_at > GOOD_FOR:
                self._parts = await asyncio.to_thread(_sizes_of, self._data)
                upto = min(self._view.position, self._counted_to + STEP)
                if upto > self._counted_to:
                    self._events.update(await self._view.ask(event_bytes, self._counted_to, upto))
                    self._counted_to = upto
                self._measured_at = time.monotonic()
        return {"parts": dict(self._parts), "events": dict(self._events), "counted_to": self._counted_to}


def _sizes_of(data: Path) -> dict[str, int]:
    return {name: _size(data / name) for name in DIRECTORIES}


def _size(directory: Path) -> int:
    """Bytes on disk: the vectors' files are sparse, so their lengths say little."""
    total = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += Path(folder, file).lstat().st_blocks * _BLOCK
    return total
