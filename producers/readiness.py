"""Should this node be asked? Live, ready or degraded, each with its reasons, out of the status of the node.

Live: the process answers. Ready: the views have what the log held when the node started, and are not far behind it
now. Degraded: ready, and something is not as it should be (no broker: what is known can be read, nothing written).
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ledger.event import JsonObject
from producers.operations.admin import Health

LONGEST_LAG_SECONDS = 30.0
"""A view that is behind for longer answers with what is no longer so."""
# The view that every read needs; without vectors a search still finds words.
NEEDED = "duckdb"


@dataclass(slots=True)
class Readiness:
    """What was seen of one node since it started."""

    head_at_start: int | None = None
    caught_up: bool = False

    def of(self, status: JsonObject) -> Health:
        """The health that a status means; `reasons` are the status' own, `waits_for` is why it is not ready."""
        head, reasons = int(status["stream"]["head"]), [str(reason) for reason in status["reasons"]]
        needed = next(view for view in status["views"] if view["name"] == NEEDED)
        if self.head_at_start is None and status["stream"]["time"] is not None:
            self.head_at_start = head
        if not self.caught_up and (self.head_at_start is not None or not reasons):
            self.caught_up = needed["position"] >= (self.head_at_start or 0)
        waits_for = []
        if not self.caught_up:
            known = "the broker has not said how long the log is" if self.head_at_start is None else (
                f"the view {NEEDED} is at position {needed['position']} of the {self.head_at_start} at the start"
            )  # fmt: skip
            waits_for.append(known)
        elif needed["lag_seconds"] > LONGEST_LAG_SECONDS:
            waits_for.append(f"the view {NEEDED} is {needed['lag_seconds']} s behind")
        lags = {str(view["name"]): float(view["lag_seconds"]) for view in status["views"]}
        return Health(bool(status["healthy"]), reasons, waits_for, lags)


def lag(view: str, position: int, stored_us: int, head: int, head_ns: int) -> JsonObject:
    """How far a view is behind: in events, and at least how long the oldest that is not folded has waited."""
    seconds = 0.0
    if position < head:
        now = time.time()
        seconds = max(now - head_ns / 1e9, head_ns / 1e9 - stored_us / 1e6 if stored_us else 0.0, 0.0)
    return {
        "name": view,
        "position": position,
        "lag_events": max(0, head - position),
        "lag_seconds": round(seconds, 3),
    }
