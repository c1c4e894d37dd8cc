"""Reading ahead: the next list of events is read and prepared on a thread while the broker works on the last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ledger.archive.event_file import read_leaves
from ledger.backup.manifest import Manifest

Taken = TypeVar("Taken")
Made = TypeVar("Made")


async def ahead(lists: Iterator[Taken], prepare: Callable[[Taken], Made]) -> AsyncGenerator[Made, None]:
    """What `prepare` makes of each list. Raises what both raise."""

    def take() -> Made | None:
        taken = next(lists, None)
        return None if taken is None else prepare(taken)

    following = asyncio.ensure_future(asyncio.to_thread(take))
    try:
        while (made := await following) is not None:
            following = asyncio.ensure_future(asyncio.to_thread(take))
            yield made
    finally:
        await asyncio.wait([following])  # a thread cannot be stopped
        if not following.cancelled():
            following.exception()  # it was raised, or nobody asks for it any more


class LeavesInOrder:
    """The leaves of a backup from position 1 on, read file by file as they are asked for."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self._files = iter(directory / segment.file for segment in manifest.segments)
        self._left: list[bytes] = []
        self._at = 0

    def next(self, count: int) -> list[bytes]:
        """The next leaves, as far as there are any. Raises OSError, pyarrow.ArrowException."""
        while len(self._left) - self._at < count and (path := next(self._files, None)) is not None:
            self._left, self._at = self._left[self._at :] + read_leaves(path), 0
        end = self._at + count
        taken = self._left[self._at : end]
        self._at = end
        return taken
