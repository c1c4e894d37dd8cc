"""Replaced-stream check: whether the stream still holds the event that was read from it.

An older copy of the stream, or another stream, may have taken its place.
"""

from __future__ import annotations

from datetime import datetime

import orjson

from kledger.contract.errors import BrokerUnavailable, LogReplaced
from ledger.broker.connection import BrokerConnection
from ledger.broker.foreign_text import bounded_id, bounded_subject
from ledger.broker.restored import as_first_stored
from ledger.event import StoredEvent
from ledger.wire.publication import MSG_ID


def nanoseconds(moment: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time of the broker, which has up to nine decimals."""
    seconds, _, rest = moment.rstrip("Z").partition(".")
    return int(datetime.fromisoformat(seconds + "+00:00").timestamp()) * 1_000_000_000 + int(rest.ljust(9, "0") or 0)


async def event_at(connection: BrokerConnection, stream: str, position: int, restored_to: int) -> StoredEvent | None:
    """The event at a position, None when the stream does not have it. Raises BrokerUnavailable."""
    reply = await connection.request(f"$JS.API.DIRECT.GET.{stream}", orjson.dumps({"seq": position}))
    headers = reply.headers or {}
    if "Nats-Sequence" not in headers:
        if headers.get("Status") == "404":
            return None
        raise BrokerUnavailable(f"the broker did not answer a look at position {position}: {headers}")
    event = StoredEvent(
        position,
        nanoseconds(headers["Nats-Time-Stamp"]),
        bounded_subject(headers["Nats-Subject"]),
        reply.data,
        bounded_id(headers.get(MSG_ID, "")),
    )
    return as_first_stored(event, headers) if position <= restored_to else event


async def check_still_there(connection: BrokerConnection, stream: str, event: StoredEvent, restored_to: int) -> None:
    """Raise LogReplaced unless the stream holds this event where it was read.

    Raises BrokerUnavailable, also when a replica that lags behind answered.
    """
    now = await event_at(connection, stream, event.position, restored_to)
    if now is None:
        raise BrokerUnavailable(f"position {event.position} was read from the stream {stream} and is not there now")
    if now != event:
        raise replaced(event.position, f"the stream {stream}")


def replaced(position: int, stream: str) -> LogReplaced:
    """The error for a stream that holds another event at `position` than the one read or folded before."""
    return LogReplaced(
        f"position {position} of {stream} holds another event than the one that was read there before: an older copy, "
        "or another stream, has taken its place. Nothing more is folded: bring the right one back (kledger "
        "restore-backup); or, if this is the right one, make its views and vectors anew (kledger rebuild)",
        position=position,
    )
