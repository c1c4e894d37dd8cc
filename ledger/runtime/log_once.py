"""How is a state logged that is met again and again? Once when it begins, and once when it ends with the count."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any

import structlog

SELDOM = 60.0
"""Seconds between two lines of the same kind, of what callers can cause as often as they like."""


_MOST_SAID = 5
"""Different errors of one trouble that are worth a line."""


class Outage:
    """A trouble that lasts. Who meets it says so each time; the log has a line when it begins, changes or ends."""

    def __init__(self, began: str, ended: str, log: Any = None) -> None:
        self._began, self._ended = began, ended
        self._log = log or structlog.get_logger(__name__)
        self._in_trouble: set[Hashable] = set()
        self._said: set[str] = set()
        self._times = 0
        self._since = 0.0

    def met(self, error: str = "", who: Hashable = None, **about: Any) -> None:
        """`who` is in trouble, of several that may be; `error` is what it says, and a new one is a line."""
        self._times += 1
        if not self._in_trouble:
            self._since, self._said = time.monotonic(), set()
            new = True
        else:
            new = bool(error) and error not in self._said and len(self._said) < _MOST_SAID
        self._in_trouble.add(who)
        if new:
            self._said.add(error)
            self._log.warning(self._began, **({"error": error} if error else {}), **about)

    def over(self, who: Hashable = None, **about: Any) -> None:
        """`who` is in no trouble, any more or at all; the line comes with the last one."""
        if who not in self._in_trouble:
            return
        self._in_trouble.remove(who)
        if self._in_trouble:
            return
        seconds, times = round(time.monotonic() - self._since, 3), self._times
        self._times = 0
        self._log.info(self._ended, seconds=seconds, times=times, **about)

    def forgotten(self, who: Hashable = None) -> None:
        """`who` is gone for good, which ends no trouble."""
        self._in_trouble.discard(who)


class Seldom:
    """Lines that anybody can cause: the first of each kind, then one a minute with the number of those between."""

    def __init__(self, log: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log or structlog.get_logger(__name__)
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}

    def warning(self, event: str, kind: str, **about: Any) -> None:
        """Log it unless one of its kind was logged just now. There are only so many kinds."""
        now = self._clock()
        last, left_out = self._kinds.get(kind, (float("-inf"), 0))
        if now - last < SELDOM:
            self._kinds[kind] = (last, left_out + 1)
            return
        self._kinds[kind] = (now, 0)
        self._log.warning(event, **about, **({"left_out": left_out} if left_out else {}))
