"""Stream reader: reads the stream from a position on and never skips an event, whatever happens to the broker.

On any trouble it begins a new delivery after the last event that was handed over. Before that it checks that the stream
still holds that very event, because an older copy of the stream may have taken its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import structlog

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LogGap
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM
from ledger.broker.restored import restored_to
from ledger.event import JsonObject, StoredEvent
from ledger.store.pull_consumer import Delivery, EndMissing, Interrupted
from ledger.store.stale_copies import check_still_there
from ledger.wire.publication import PASSING, error_code, error_of

log = structlog.get_logger(__name__)

PATIENCE = 30.0
# A replicated stream may be behind for this long: after servers were killed, a new leader answers before it has caught
# up with its members.
COPIES_CATCH_UP_S = 30.0
_PAUSE = 0.05


async def read_stream(
    connection: BrokerConnection,
    stream: str,
    start: int,
    *,
    follow: bool,
    batch: int,
    restored: Callable[[JsonObject], int] = restored_to,
) -> AsyncGenerator[list[StoredEvent], None]:
    """Yield lists of up to `batch` events from position `start`; see Ledger.read for the contract.

    Up to two lists are requested ahead of the caller. `restored` takes the stream's configuration and returns the
    position up to which it was restored. Raises LogGap, LogReplaced, RestoreUnfinished, BrokerMisconfigured, and
    BrokerUnavailable when the broker is unreachable for longer than `PATIENCE` seconds.
    """
    if batch < 1:
        raise ValueError(f"a list holds at least one event, not {batch}")
    position = max(1, start) - 1
    end: int | None = None
    last: StoredEvent | None = None
    config: JsonObject = {}
    loop = asyncio.get_running_loop()
    troubled_since: float | None = None
    while True:
        delivery: Delivery | None = None
        try:
            head, config = await _head_after(connection, stream, position)
            if not follow:
                end = head if end is None else end
            if position == end:
                return
            if last is not None:
                await _check_same(connection, stream, last, restored(config))
            delivery = Delivery(connection, stream, position, batch, restored_to=restored(config))
            await delivery.begin(end)
            while position != end:
                events = await delivery.take()
                troubled_since = None
                last = events[-1]
                position = last.position
                yield events
        except Interrupted as interruption:
            now = loop.time()
            if follow and delivery is not None and delivery.alive:  # nothing came, and nothing was wrong until now
                troubled_since = None
            troubled_since = troubled_since or now
            if isinstance(interruption, EndMissing) and (
                not _has_copies(config) or now - troubled_since > COPIES_CATCH_UP_S
            ):
                raise interruption.gap from interruption
            log.debug("log_reading_resumes", after=position, reason=str(interruption))
            if now - troubled_since > PATIENCE:
                raise BrokerUnavailable(
                    f"the stream {stream} cannot be read on after position {position} for {PATIENCE:.0f} s: "
                    f"{interruption}"
                ) from interruption
        finally:
            if delivery is not None:
                await delivery.end()
        if troubled_since is not None:
            await asyncio.sleep(_PAUSE)


def _has_copies(config: JsonObject) -> bool:
    return int(config.get("num_replicas", 1)) > 1


async def _check_same(connection: BrokerConnection, stream: str, last: StoredEvent, restored_to: int) -> None:
    try:
        await check_still_there(connection, stream, last, restored_to)
    except BrokerUnavailable as error:
        raise Interrupted(str(error)) from error


async def _head_after(connection: BrokerConnection, stream: str, position: int) -> tuple[int, JsonObject]:
    """The last position of the stream, at or after `position`, and the stream's configuration.

    Raises Interrupted, LogGap (the stream ends before `position`: it was truncated, or is another one).
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + COPIES_CATCH_UP_S
    while True:
        try:
            await connection.until_connected(PATIENCE)
            info = await connection.api(f"STREAM.INFO.{stream}")
        except BrokerUnavailable as error:
            raise Interrupted(str(error)) from error
        code = error_code(info)
        if code == NO_STREAM:
            raise BrokerMisconfigured(f"the stream {stream} is not there: start a node, which sets it up")
        if code in PASSING:
            raise Interrupted(str(error_of(info, "a look at the stream")))
        if code:
            raise error_of(info, f"a look at the stream {stream}")
        last = int(info["state"]["last_seq"])
        if last >= position:
            return last, info["config"]
        if not _has_copies(info["config"]) or loop.time() > until:
            raise LogGap(
                f"the stream {stream} ends at position {last} and was to be read on after {position}: it was "
                "cut, is an older copy, or is another one. Bring back from a backup what was cut (kledger repair), or "
                "all of it into a new directory (kledger restore-backup); or, if this is the right one, make its views "
                "and vectors anew (kledger rebuild)",
                first=last + 1,
                last=position,
            )
        await asyncio.sleep(_PAUSE)
