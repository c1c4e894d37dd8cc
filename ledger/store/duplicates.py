"""Duplicate lookup: which of these events the stream holds already, and at which positions.

Used only after the broker refused a retry. It asks the stream's leader, because a replica may lag behind.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NOTHING_STORED
from ledger.event import JsonObject, NewEvent
from ledger.wire.publication import Publication, error_code, error_of, history_of

_AT_ONCE = 64


class StoredMessage(NamedTuple):
    """A message of the stream: its position, subject and event id; position 0 when there is none."""

    position: int
    subject: str
    event_id: str

    def is_of(self, publication: Publication) -> bool:
        """Whether this is the same event. Only its actor may publish to its subject."""
        return self.subject == publication.subject and self.event_id == publication.event.id


async def find_stored(connection: BrokerConnection, stream: str, publications: Iterable[Publication]) -> dict[str, int]:
    """The positions of the events that are stored, by event id. Raises BrokerUnavailable, BrokerMisconfigured.

    Checks the first event after the expected position (an accepted append is exactly there), then the last one on
    the event's own subject, and, where that is a different event, all on that subject within the duplicate window.
    """
    positions: dict[str, int] = {}
    doubtful: dict[str, set[str]] = {}
    limit = asyncio.Semaphore(_AT_ONCE)

    async def find(publication: Publication) -> None:
        event = publication.event
        async with limit:
            if event.expects is not None:
                first = {"seq": event.expects + 1, "next_by_subj": history_of(event)}
                message = await get_message(connection, stream, first)
                if message.is_of(publication):
                    positions[event.id] = message.position
                    return
            message = await get_message(connection, stream, {"last_by_subj": publication.subject})
            if message.is_of(publication):
                positions[event.id] = message.position
            elif message.position:
                doubtful.setdefault(publication.subject, set()).add(event.id)

    async with asyncio.TaskGroup() as group:
        for publication in publications:
            group.create_task(find(publication))
    if doubtful:
        start = await _start_of_window(connection, stream)
        for subject, wanted in doubtful.items():
            await _scan(connection, stream, subject, start, wanted, positions)
    return positions


async def last_position(connection: BrokerConnection, stream: str, event: NewEvent) -> int:
    """The last position of the event's entity, as the stream's leader knows it; 0 when there is none."""
    return (await get_message(connection, stream, {"last_by_subj": history_of(event)})).position


async def _scan(
    connection: BrokerConnection, stream: str, subject: str, start: int, wanted: set[str], positions: dict[str, int]
) -> None:
    """Add to `positions` those of the wanted event ids, reading one subject from position `start` on."""
    missing = set(wanted)
    position = start - 1
    while missing:
        position, _, event_id = await get_message(connection, stream, {"seq": position + 1, "next_by_subj": subject})
        if not position:
            return
        if event_id in missing:
            missing.discard(event_id)
            positions[event_id] = position


async def _start_of_window(connection: BrokerConnection, stream: str) -> int:
    """The first position within the duplicate window, by the broker's clock."""
    info = await connection.api(f"STREAM.INFO.{stream}")
    if error_code(info):
        raise error_of(info, "a look at the stream")
    window = timedelta(microseconds=info["config"]["duplicate_window"] / 1_000)
    since = datetime.fromisoformat(info["ts"][:19] + "+00:00") - window - timedelta(seconds=5)
    reply = await connection.request(
        f"$JS.API.DIRECT.GET.{stream}",
        orjson.dumps({"start_time": since.isoformat(), "next_by_subj": ">"}),
    )
    sequence = (reply.headers or {}).get("Nats-Sequence")
    return int(sequence) if sequence else int(info["state"]["last_seq"]) + 1


async def get_message(connection: BrokerConnection, stream: str, query: JsonObject) -> StoredMessage:
    """Read one message from the stream's leader. Raises BrokerUnavailable, BrokerMisconfigured."""
    answer = await connection.api(f"STREAM.MSG.GET.{stream}", query)
    code = error_code(answer)
    if code in NOTHING_STORED:
        return StoredMessage(0, "", "")
    if code:
        raise error_of(answer, "a look at the stream")
    message = answer["message"]
    body = base64.b64decode(message.get("data") or "")
    return StoredMessage(int(message["seq"]), message["subject"], _id_of(body))


def _id_of(body: bytes) -> str:
    """The event id in a stored body; "" when a foreign client stored something else."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    event_id = document.get("id") if isinstance(document, dict) else None
    return event_id if isinstance(event_id, str) else ""
