"""How long a node has seen its wall clock go on as time does: only then is anything removed for its age."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

JUMP_SECONDS = 60.0
"""By so much a clock is set right without being doubted."""


def _since_boot() -> float:
    """Seconds that a sleep of the machine counts among, where the system has such a clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


class SteadyClock:
    """The wall clock of one node beside the monotonic one, from the node's start on.

    What is removed does not come back once a clock that went ahead by a year is set right again.
    """

    def __init__(self, wall: Callable[[], float] = time.time, clock: Callable[[], float] = _since_boot) -> None:
        self._wall, self._clock = wall, clock
        self._steady_since = clock()
        self._apart = wall() - self._steady_since

    def seconds(self) -> float:
        """For how long the wall clock has not jumped; 0 where it has since the last call."""
        now, wall = self._clock(), self._wall()
        ahead, self._apart = wall - now - self._apart, wall - now
        if abs(ahead) > JUMP_SECONDS:
            log.warning("the clock was set: no session is removed for its age yet", seconds=round(ahead))
            self._steady_since = now
        return now - self._steady_since
