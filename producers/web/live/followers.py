"""Followers of one node: once a second, and only where items moved, each session asks what changed that it may see.

The position of the view is one look for all of them. A session with several pages asks once for those that know the
same. A stream ends with its session, with the node, and after ten minutes, when the page comes again; it keeps no
session alive, since only what a person does is a sign of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from itertools import groupby
from typing import Protocol

from kledger.contract.errors import BrokerUnavailable, LedgerError, RateLimited
from producers.web.live.follower import ENDED, MOST, Follower
from producers.web.sessions import ENDS, Session, Sessions

MOST_OF_A_SESSION = 5
MOST_OF_ONE = 20
"""Streams at once of one token, or of whoever is named without one."""
MOST_OF_A_NODE = 100
TICK = 1.0
STAYS_EVERY = 15.0
LONGEST = 600.0
_BETWEEN = 0.005  # seconds between two sessions' looks: whoever searches meanwhile has their turn
_ANSWERED_WITHIN = 5.0


class Moves(Protocol):
    """The live view as far as pages look at it themselves: how far it is, and where its items last moved."""

    @property
    def position(self) -> int: ...

    @property
    def items_position(self) -> int: ...


class Followers:
    """Every open stream of a node's pages."""

    def __init__(self, view: Moves, sessions: Sessions) -> None:
        self._view = view
        self._sessions = sessions
        self._open: list[Follower] = []
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    def open(self, session: Session, after: int) -> Follower:
        """A further one, of what changes after a position. Raises RateLimited, BrokerUnavailable."""
        if self._closed or len(self._open) >= MOST_OF_A_NODE:
            raise BrokerUnavailable("this node tells no further page what changes: open the page again later")
        own = [each.session is session for each in self._open if each.session.of == session.of]
        if sum(own) >= MOST_OF_A_SESSION or len(own) >= MOST_OF_ONE:
            raise RateLimited(
                f"{min(len(own), MOST_OF_ONE)} pages of yours are told already what changes: close one of them",
                retry_after=STAYS_EVERY,
            )
        now = time.monotonic()
        follower = Follower(session, after, began=now, said=now)
        self._open.append(follower)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="pages-live")
        return follower

    def leave(self, follower: Follower) -> None:
        """The page is gone."""
        with contextlib.suppress(ValueError):
            self._open.remove(follower)

    def close(self) -> None:
        """End all of them, and take no other: the node stops."""
        self._closed = True
        for each in self._open:
            each.end()

    def __len__(self) -> int:
        return len(self._open)

    async def _look(self) -> None:
        while self._open:
            await asyncio.sleep(TICK)
            await self._once()

    async def _once(self) -> None:
        """One look for everybody."""
        now, moved = time.monotonic(), self._view.items_position
        for each in self._open:
            if not self._sessions.lasts(each.session):
                each.end(ENDED)
            elif now - each.began > LONGEST:
                each.end()
        # Those of a session that know the same ask once.
        due = sorted(filter(lambda each: _may_have_missed(each, moved), self._open), key=_knows)
        for _, several in groupby(due, key=_knows):
            await self._tell(list(several), moved)
            await asyncio.sleep(_BETWEEN)
        for each in [*self._open]:
            if now - each.said >= STAYS_EVERY and not each.over:
                await self._still_there(each, now)

    async def _tell(self, several: list[Follower], moved: int) -> None:
        session = several[0].session
        with contextlib.suppress(LedgerError, TimeoutError):  # it is tried again
            try:
                async with asyncio.timeout(_ANSWERED_WITHIN):
                    told = await session.ledger.changes(after=several[0].seen, limit=MOST)
            except LedgerError as error:
                self._refused(session, error)
                raise
            whole = len(told["changes"]) < MOST
            for each in several:
                if not each.over and self._sessions.lasts(session):
                    each.learn(told)
                    each.looked_at = moved if whole else None

    async def _still_there(self, follower: Follower, now: float) -> None:
        """Keep a quiet stream open, while the token of its session is good."""
        session = follower.session
        if session.with_token:
            try:
                await session.ledger.changes(after=self._view.position, limit=1)
            except LedgerError as error:
                self._refused(session, error)
        if not follower.over:
            follower.stay(now)

    def _refused(self, session: Session, error: LedgerError) -> None:
        """A session ends with its token."""
        if session.with_token and error.code in ENDS:
            session.over = True
            for each in self._open:
                if each.session is session:
                    each.end(ENDED)


def _may_have_missed(follower: Follower, moved: int) -> bool:
    """Whether items moved since a follower last knew of all; an open file knows of no move yet where it says 0."""
    return (
        not follower.over and follower.count < MOST and moved != follower.looked_at and not 0 < moved <= follower.seen
    )


def _knows(follower: Follower) -> tuple[int, int]:
    return id(follower.session), follower.seen
