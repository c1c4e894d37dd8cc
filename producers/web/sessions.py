"""Sessions of people at the pages: who looks, with which token, kept in the memory of the node.

A session is named by a random id in a cookie. It ends when the person signs out, when it is idle, after a week, when
its token is no longer valid, and with the node. Nothing of it is written down.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kledger.client.clients import AsyncLedgerClient
from kledger.contract.scopes import Caller

IDLE = 8 * 3600.0
"""Seconds without a request after which a session ends."""
LONGEST = 7 * 24 * 3600.0
MOST = 2_000
"""Sessions at once; one more ends the one that has been idle longest."""
MOST_OF_ONE = 20
"""Sessions at once of one token, or of whoever is named without one: nobody ends those of others."""
ENDS = frozenset({"unauthenticated", "token_expired", "token_revoked"})
"""Codes of refusals with which a session ends, where it has a token."""
MOST_NOTICES = 20
"""Notices that wait for the next page; the first ones make room."""
_ID_BYTES = 32


@dataclass(frozen=True, slots=True)
class Notice:
    """What came of a change, shown on the next page; `undo` is where it is undone, with the form's `fields`."""

    text: str
    undo: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    bad: bool = False


@dataclass(slots=True)
class Session:
    """One signed-in person. `csrf` has to come with every change; `operator`, `analyst` and `reads` (knowledge) are
    what they may do. `of` is whose it is: a token, or whoever is named without one.
    """

    caller: Caller
    ledger: AsyncLedgerClient
    with_token: bool
    operator: bool
    analyst: bool
    reads: bool = True
    of: str = ""
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(_ID_BYTES))
    notices: list[Notice] = field(default_factory=list)
    began: float = 0.0
    seen: float = 0.0
    over: bool = False
    """It ended before its time: by signing out, or with its token."""

    def who(self) -> list[str]:
        """The entities that the person is, most specific first; empty for the operator."""
        return [] if self.caller.is_operator else self.caller.entities()

    def tell(self, notice: Notice) -> None:
        """Show this on the next page, with the last ones before it."""
        self.notices = [*self.notices, notice][-MOST_NOTICES:]

    def take_notices(self) -> list[Notice]:
        """What was not shown yet, once."""
        taken, self.notices = self.notices, []
        return taken


class Sessions:
    """The sessions of one node."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, most: int = MOST, most_of_one: int = MOST_OF_ONE
    ) -> None:
        self._clock = clock
        self._most, self._most_of_one = most, most_of_one
        self._by_hash: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, session: Session) -> str:
        """Keep a session; returns the id that its cookie has."""
        named = secrets.token_urlsafe(_ID_BYTES)
        session.began = session.seen = self._clock()
        own = [key for key, each in self._by_hash.items() if each.of == session.of]
        for key in own[: len(own) + 1 - self._most_of_one]:  # the longest idle ones first
            self._by_hash.pop(key).over = True
        self._by_hash[_hash(named)] = session
        while len(self._by_hash) > self._most:
            _, ended = self._by_hash.popitem(last=False)
            ended.over = True
        return named

    def of(self, named: str | None, *, renewed: bool = True) -> Session | None:
        """The session with this id, while it lasts; with `renewed` it is in use now."""
        if not named:
            return None
        key = _hash(named)
        session = self._by_hash.get(key)
        if session is None:
            return None
        if not self.lasts(session):
            del self._by_hash[key]
            return None
        if renewed:
            session.seen = self._clock()
            self._by_hash.move_to_end(key)
        return session

    def lasts(self, session: Session) -> bool:
        """Whether a session has not ended."""
        now = self._clock()
        return not session.over and now - session.seen <= IDLE and now - session.began <= LONGEST

    def end(self, named: str | None) -> None:
        """End a session."""
        if named and (session := self._by_hash.pop(_hash(named), None)) is not None:
            session.over = True


def _hash(named: str) -> bytes:
    """What a session is kept under: nobody who reads the memory can use it as a cookie."""
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).digest()
