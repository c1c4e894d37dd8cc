"""Circuit breaker of an endpoint that readers wait for: open after several failures in a row, until a probe succeeds.

Existing libraries count failures and let a real call through to probe the endpoint. Here no reader waits for that call,
and the pause is the one that a refusal states (Retry-After).
"""

from __future__ import annotations

import time
from collections.abc import Callable

FAILURES = 3
"""Consecutive failures that open the circuit."""
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
LONGEST_STATED = 300.0
"""Upper limit of a Retry-After."""


def stated_pause(retry_after: str | None) -> float | None:
    """The seconds that a Retry-After states; None where it states none: our own pause applies to a date."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


class Breaker:
    """Circuit breaker: closed while calls succeed, open after FAILURES in a row, closed again by a successful probe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._again_at = 0.0
        self.reason: str | None = None
        """Why the circuit is open; None while it is closed."""

    def succeeded(self) -> None:
        """Record a success: closes the circuit."""
        self._failures, self._pause, self.reason = 0, FIRST_PAUSE, None

    def failed(self, reason: str, retry_after: float | None = None, *, useless: bool = False) -> None:
        """Record a failure. One with a Retry-After, or with a useless answer, opens the circuit at once.

        Useless answers are billed: the pauses between probes then grow longer. What fails while the circuit is open and
        no probe is due was asked before: it makes the pause longer only where it states one.
        """
        if self.reason is not None and self.due():
            if retry_after is not None:
                self._again_at = max(self._again_at, self._clock() + min(retry_after, LONGEST_STATED))
            return
        self._failures += 1
        if self.reason is None and self._failures < FAILURES and retry_after is None and not useless:
            return
        pause = self._pause if retry_after is None else min(max(retry_after, self._pause), LONGEST_STATED)
        self._pause = min(self._pause * 2, LONGEST_STATED if useless else LONGEST_PAUSE)
        self._again_at = self._clock() + pause
        self.reason = reason

    def due(self) -> float:
        """Seconds until the next probe; 0 when it is due."""
        return max(0.0, self._again_at - self._clock())
