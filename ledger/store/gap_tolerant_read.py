"""What is still there of a stream that may be damaged? An audit reads on where a fold has to stop.

The same reader as everywhere, begun again behind each hole; where the server cannot hand over what it says it
has, position by position.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import NamedTuple

from kledger.contract.errors import LogGap
from ledger.event import StoredEvent
from ledger.stream import Ledger


class Missing(NamedTuple):
    """Positions that the stream does not hand over, both included."""

    first: int
    last: int


async def read_what_is_there(
    ledger: Ledger, *, batch: int = 1_000
) -> AsyncGenerator[list[StoredEvent] | Missing, None]:
    """Yield everything from position 1 to the head as it is now: lists of events, and the holes between them.

    Raises BrokerUnavailable when the broker stays away.
    """
    end = (await ledger.head()).position
    position = 0
    while position < end:
        try:
            async with contextlib.aclosing(ledger.read(position + 1, batch=batch)) as lists:
                async for events in lists:
                    position = events[-1].position
                    yield events
        except LogGap as gap:
            last = min(int(str(gap.details["last"])), end)
            yield Missing(position + 1, last)
            position = last
        else:
            break
