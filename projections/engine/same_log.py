"""Check that the log is the one that the views were folded from: by the time of its event at the checkpoint.

A broker that restarted with an older data directory, or another stream, may hold as many events or more, so that a
comparison of positions would not notice it.
"""

from __future__ import annotations

from ledger.store.stale_copies import replaced
from ledger.stream import Ledger, event_at
from projections.engine.duckdb import checkpoint_of
from projections.engine.view import View


async def check_same_log(ledger: Ledger, view: View) -> None:
    """Compare the log's time of the event at the view's checkpoint, in microseconds, with the checkpoint's.

    A log that ends before the checkpoint fails in the read that follows. Raises LogReplaced, LogGap, BrokerUnavailable.
    """
    position, stored_us = await view.ask(checkpoint_of)
    if not position:
        return
    event = await event_at(ledger, position)
    if event is not None and event.stored_ns // 1000 != stored_us:
        raise replaced(position, "the log")
