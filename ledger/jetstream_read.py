"""How is the stream read from a position on, without ever skipping an event, whatever happens to the broker?

By a loop of our own: on any trouble a new delivery begins after the last position that was handed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import structlog

from ledger.connection import BrokerConnection
from ledger.delivery import Delivery, Interrupted
from ledger.errors import BrokerMisconfigured, BrokerUnavailable, LogGap
from ledger.event import StoredEvent
from ledger.publication import PASSING, error_code, error_of

log = structlog.get_logger(__name__)

PATIENCE = 30.0
_LEADER_CATCHES_UP_S = 5.0
_NO_STREAM = 10059
_PAUSE = 0.05


async def read_stream(
    connection: BrokerConnection, stream: str, start: int, *, follow: bool, batch: int
) -> AsyncGenerator[list[StoredEvent], None]:
    """Yield lists of up to `batch` events from position `start`; see Ledger.read for the contract.

    Up to two lists are requested ahead of the reader. Raises LogGap, BrokerMisconfigured, and
    BrokerUnavailable when the broker stays away for longer than `PATIENCE` seconds.
    """
    if batch < 1:
        raise ValueError(f"a list holds at least one event, not {batch}")
    position = max(1, start) - 1
    end: int | None = None
    loop = asyncio.get_running_loop()
    troubled_since: float | None = None
    while True:
        delivery = Delivery(connection, stream, position, batch)
        try:
            head = await _head_after(connection, stream, position)
            if not follow:
                end = head if end is None else end
            if position == end:
                return
            await delivery.begin(end)
            while position != end:
                events = await delivery.take()
                troubled_since = None
                position = events[-1].position
                yield events
        except Interrupted as interruption:
            now = loop.time()
            troubled_since = troubled_since or now
            log.info("log_reading_resumes", after=position, reason=str(interruption))
            if now - troubled_since > PATIENCE:
                raise BrokerUnavailable(
                    f"the stream {stream} cannot be read on after position {position} for {PATIENCE:.0f} s: "
                    f"{interruption}"
                ) from interruption
        finally:
            await delivery.end()
        if troubled_since is not None:
            await asyncio.sleep(_PAUSE)


async def _head_after(connection: BrokerConnection, stream: str, position: int) -> int:
    """The last position of the stream, which is not before what was read already.

    Raises Interrupted, LogGap (the stream ends earlier: it was cut, or is another one).
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + _LEADER_CATCHES_UP_S
    while True:
        try:
            await connection.until_connected(PATIENCE)
            info = await connection.api(f"STREAM.INFO.{stream}")
        except BrokerUnavailable as error:
            raise Interrupted(str(error)) from error
        code = error_code(info)
        if code == _NO_STREAM:
            raise BrokerMisconfigured(f"the stream {stream} is not there: start a node, which sets it up")
        if code in PASSING:
            raise Interrupted(str(error_of(info, "a look at the stream")))
        if code:
            raise error_of(info, f"a look at the stream {stream}")
        last = int(info["state"]["last_seq"])
        if last >= position:
            return last
        # In a cluster a new leader may still be reading in what its members have.
        if info["config"].get("num_replicas", 1) == 1 or loop.time() > until:
            raise LogGap(
                f"the stream {stream} ends at position {last} and was to be read on after {position}: it was "
                "cut, or is another one; restore it from a copy, or rebuild the views from what is there",
                first=last + 1,
                last=position,
            )
        await asyncio.sleep(_PAUSE)
