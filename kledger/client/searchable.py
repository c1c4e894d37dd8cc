"""The wait until everybody's searches find what was written, which says how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from kledger.client.faces import Endpoint
from kledger.client.knowledge import KNOWLEDGE
from kledger.client.wire import Wire
from kledger.contract.errors import ViewBehind

LOOK = 2.0  # seconds between two words of how far it is
Progress = Callable[[int], None]


async def wait_searchable(
    wire: Wire, position: int | None = None, *, timeout: float = 60.0, progress: Progress | None = None
) -> bool:
    """Wait until every search finds what was written up to `position` (None: all that this client wrote).

    `progress` is called with the position that searches have, every two seconds. False when `timeout` seconds were not
    enough: nothing is lost, and the rest follows.
    """
    goal = wire.connection.written if position is None else position
    until = time.monotonic() + timeout
    while goal:
        left = until - time.monotonic()
        asking = replace(wire, at_least=goal, wait=max(0.0, min(LOOK, left)))
        # By keyword alone: no model is asked for a vector of these words.
        question = {"q": "searchable", "top_k": 1, "paths": "keyword", "record": False, "route": False}
        try:
            await asking.read(f"{KNOWLEDGE}/search", question)
        except ViewBehind as behind:
            known = behind.details.get("position")
            if progress is not None and isinstance(known, int):
                progress(known)
            if left <= LOOK:
                return False
        else:
            return True
    return True


class SearchableEndpoints:
    """The wait for searches."""

    wait_searchable = Endpoint(wait_searchable)
