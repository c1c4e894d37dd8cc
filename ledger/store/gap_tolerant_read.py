"""Gap-tolerant read: everything that a possibly damaged stream still has, and the gaps between.

For an audit, which reads on where a fold has to stop. It uses the ordinary reader and starts it again behind each gap.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import NamedTuple

from kledger.contract.errors import LogGap
from ledger.event import StoredEvent
from ledger.stream import Ledger


class Missing(NamedTuple):
    """A range of positions that the stream does not deliver, both ends included."""

    first: int
    last: int


async def read_what_is_there(
    ledger: Ledger, *, batch: int = 1_000
) -> AsyncGenerator[list[StoredEvent] | Missing, None]:
    """Yield everything from position 1 to the current head: lists of events, and the gaps between them.

    Raises BrokerUnavailable when the broker stays unreachable.
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
            last = int(str(gap.details["last"]))
            if last <= position or last > end:  # the log ends before what was read: it was cut meanwhile
                last = end
            yield Missing(position + 1, last)
            position = last
        else:
            break
