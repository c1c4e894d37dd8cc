"""A follower: one open page, what changed since it was opened, and what it was not told yet."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import orjson

from kledger.answers.overview import Changes
from producers.web.sessions import Session

MOST = 1_000
"""Changes that are counted; nobody reads a page for longer."""
STILL_HERE = b": still here\n\n"
ENDED = b"event: ended\ndata: \n\n"
"""Tells the page that it need not come again."""


@dataclass(eq=False, slots=True)
class Follower:
    """One stream. `seen` is the position up to which it knows what changed."""

    session: Session
    seen: int
    began: float
    said: float
    count: int = 0
    looked_at: int | None = None
    """Where the view's items stood when they were last looked at."""
    over: bool = False
    """Nothing more comes; `last` may still be said."""
    last: bytes = b""
    _ids: dict[str, None] = field(default_factory=dict)
    _due: bytes = b""
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def learn(self, told: Changes) -> None:
        """What the person may see of what changed."""
        self.seen = told["next"]
        if told["changes"]:
            self.count += len(told["changes"])
            self._ids |= {change["id"]: None for change in told["changes"]}
            self._woken.set()

    def stay(self, now: float) -> None:
        """Keep the connection open."""
        self._due, self.said = STILL_HERE, now
        self._woken.set()

    def end(self, last: bytes = b"") -> None:
        """Say nothing more but this."""
        self.over, self.last = True, last
        self._woken.set()

    async def next(self) -> bytes | None:
        """What to send, once there is something; None at the end."""
        await self._woken.wait()
        self._woken.clear()
        if self.over:
            return None
        due, self._due = self._due, b""
        if not self._ids:
            return due
        ids, self._ids = list(self._ids), {}
        told = {"ids": ids, "count": self.count, "position": self.seen}
        return b"event: changed\ndata: " + orjson.dumps(told) + b"\n\n"
