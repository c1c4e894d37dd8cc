"""Sizes of a node: bytes on disk by part, which together are its whole directory, and of the events' data by entity.

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

from ledger.broker.access import EMBEDDINGS_STREAM, KEYS_STREAM, LEDGER_STREAM, SESSIONS_STREAM
from ledger.event import JsonObject
from projections.engine.view import View
from projections.views.events.sizes import event_bytes

_DIRECTORIES = ("broker", "archive", "views", "vectors", "snapshots", "keys", "chain")
_STREAMS = {
    LEDGER_STREAM: "log",
    KEYS_STREAM: "keys",
    SESSIONS_STREAM: "sessions",
    EMBEDDINGS_STREAM: "embeddings",
}
"""Streams of the embedded broker that are a part of their own; whatever else it has is `broker`."""
OTHER = "other"
PARTS = tuple(dict.fromkeys((*_STREAMS.values(), *_DIRECTORIES, OTHER)))
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
        """`parts`: bytes on disk by PARTS; `events`: bytes of event data by entity, up to `counted_to`."""
        async with self._turn:
            if time.monotonic() - self._measured_at > GOOD_FOR:
                self._parts = await asyncio.to_thread(_sizes_of, self._data)
                upto = min(self._view.position, self._counted_to + STEP)
                if upto > self._counted_to and not self._view.instance.damage:
                    self._events.update(await self._view.ask(event_bytes, self._counted_to, upto))
                    self._counted_to = upto
                self._measured_at = time.monotonic()
        return {"parts": dict(self._parts), "events": dict(self._events), "counted_to": self._counted_to}


def _sizes_of(data: Path) -> dict[str, int]:
    """Bytes on disk by part: the vectors' files are sparse, so their lengths say little."""
    sizes = dict.fromkeys(PARTS, 0)
    for folder, _, files in os.walk(data):
        part = _part_of(Path(folder).relative_to(data).parts)
        for file in files:
            with contextlib.suppress(OSError):  # gone meanwhile
                sizes[part] += Path(folder, file).lstat().st_blocks * _BLOCK
    return sizes


def _part_of(folder: tuple[str, ...]) -> str:
    """The part that the files of a folder belong to, by its path in the node's directory."""
    if not folder or folder[0] not in _DIRECTORIES:
        return OTHER
    if folder[0] == "broker" and "streams" in folder[:-1]:
        return _STREAMS.get(folder[folder.index("streams") + 1], "broker")
    return folder[0]
