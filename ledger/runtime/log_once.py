"""Log throttling: one line when a repeated trouble begins and one when it ends, with the count."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

import structlog

SELDOM = 60.0
"""Seconds between two lines of the same kind, for events that callers can cause at will."""


_MOST_ERRORS = 5
"""The most different errors of one outage that are logged."""


class Outage:
    """A lasting trouble. It is reported each time it is met, and logged when it begins, changes or ends."""

    def __init__(self, began: str, ended: str, log: Any = None) -> None:
        self._began, self._ended = began, ended
        self._log = log or structlog.get_logger(__name__)
        self._in_trouble: set[Hashable] = set()
        self._logged: set[str] = set()
        self._times = 0
        self._since = 0.0

    def met(self, error: str = "", who: Hashable = None, **about: Any) -> None:
        """Report that `who` (one of several components) is in trouble; a new `error` is logged."""
        self._times += 1
        if not self._in_trouble:
            self._since, self._logged = time.monotonic(), set()
            new = True
        else:
            new = bool(error) and error not in self._logged and len(self._logged) < _MOST_ERRORS
        self._in_trouble.add(who)
        if new:
            self._logged.add(error)
            self._log.warning(self._began, **({"error": error} if error else {}), **about)

    def over(self, who: Hashable = None, **about: Any) -> None:
        """Report that `who` has no trouble; logged when the last one recovers."""
        if who not in self._in_trouble:
            return
        self._in_trouble.remove(who)
        if self._in_trouble:
            return
        seconds, times = round(time.monotonic() - self._since, 3), self._times
        self._times = 0
        self._log.info(self._ended, seconds=seconds, times=times, **about)

    def forgotten(self, who: Hashable = None) -> None:
        """Remove `who`, which no longer exists; this does not end the outage."""
        self._in_trouble.discard(who)


class Seldom:
    """Rate limit for lines that any caller can cause: the first of each kind, then one a minute with the count."""

    def __init__(self, log: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log or structlog.get_logger(__name__)
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}

    def warning(self, event: str, kind: str, **about: Any) -> None:
        """Log a line unless one of its kind was logged within `SELDOM`. The number of kinds must be bounded."""
        now = self._clock()
        last, left_out = self._kinds.get(kind, (float("-inf"), 0))
        if now - last < SELDOM:
            self._kinds[kind] = (last, left_out + 1)
            return
        self._kinds[kind] = (now, 0)
        self._log.warning(event, **about, **({"left_out": left_out} if left_out else {}))
