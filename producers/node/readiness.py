"""Readiness of a node, from its status: live, ready or degraded, each with its reasons.

Live: the process answers. Ready: the views have reached the head of the log at the start, the vectors nearly so, and
the views are not far behind now. Degraded: ready, but with a fault (no broker: reads work, writes do not; no vectors:
no search).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from dataclasses import dataclass

from kledger.contract.errors import LedgerError
from ledger.event import JsonObject
from ledger.stream import Log, event_at
from producers.operations.ports import Health

LONGEST_LAG_SECONDS = 30.0
"""Longest lag of a ready view; after that its answers are stale."""
# The view that every read needs.
NEEDED = "duckdb"
MAY_LACK = {"vectors": 500}
"""Events that a view may lack: a search waits for so few itself (as after a kill), and nothing else needs them."""


@dataclass(slots=True)
class Readiness:
    """Readiness state of one node since it started."""

    head_at_start: int | None = None
    caught_up: bool = False

    def of(self, status: JsonObject, not_awaited: Collection[str] = ()) -> Health:
        """The health for a status; `reasons` are those of the status, `waits_for` is why the node is not ready.

        `not_awaited` are views that need not reach the head at the start: they are stopped, or another node writes
        them.
        """
        head, reasons = int(status["stream"]["head"]), [str(reason) for reason in status["reasons"]]
        needed = next(view for view in status["views"] if view["name"] == NEEDED)
        if self.head_at_start is None and status["stream"]["time"] is not None:
            self.head_at_start = head
        waits_for = []
        if not self.caught_up and self.head_at_start is None and reasons:
            waits_for.append("the broker has not said how long the log is")
        elif not self.caught_up:
            waits_for = [
                f"the view {view['name']} is at position {view['position']} of the {self.head_at_start} at the start"
                for view in status["views"]
                if view["name"] not in not_awaited
                and view["position"] + MAY_LACK.get(view["name"], 0) < (self.head_at_start or 0)
            ]
            self.caught_up = not waits_for
        elif needed["lag_seconds"] > LONGEST_LAG_SECONDS:
            waits_for.append(f"the view {NEEDED} is {needed['lag_seconds']} s behind")
        lags = {str(view["name"]): float(view["lag_seconds"]) for view in status["views"]}
        return Health(bool(status["healthy"]), reasons, waits_for, lags)


async def lag(log: Log, view: str, position: int, head: int, head_ns: int) -> JsonObject:
    """Lag of a view: in events, and the age of the oldest unfolded event in seconds.

    The time of the last folded event tells nothing of that: on a node that nobody wrote to it is hours old.
    """
    seconds = 0.0
    if position < head:
        seconds = max(time.time() - await _stored_ns(log, position + 1, head, head_ns) / 1e9, 0.0)
    return {
        "name": view,
        "position": position,
        "lag_events": max(0, head - position),
        "lag_seconds": round(seconds, 3),
    }


async def _stored_ns(log: Log, position: int, head: int, head_ns: int) -> int:
    """When the event at a position was stored; the time of the head where that cannot be told."""
    if position < head:
        with contextlib.suppress(LedgerError):
            if (event := await event_at(log, position)) is not None:
                return event.stored_ns
    return head_ns
