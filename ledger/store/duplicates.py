"""Which of these events does the stream hold already, and where?

Asked only after the broker refused a retry. It asks the stream's leader: a copy may lag behind.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

import orjson

from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject, NewEvent
from ledger.wire.publication import Publication, error_code, error_of, history_of

_NOT_FOUND = frozenset({10037, 404})
_AT_ONCE = 64


class Stands(NamedTuple):
    """What the stream holds at a position; position 0 where it holds nothing."""

    position: int
    subject: str
    event_id: str

    def is_of(self, publication: Publication) -> bool:
        """Whether this is the event itself. The broker lets nobody but its actor publish to its subject."""
        return self.subject == publication.subject and self.event_id == publication.event.id


async def find_kept(connection: BrokerConnection, stream: str, publications: Iterable[Publication]) -> dict[str, int]:
    """The positions of those that are kept, by event id. Raises BrokerUnavailable, BrokerMisconfigured.

    Looks at the first event after the expected position (an accepted append is exactly there), at the last
    one on the event's own subject, and, where that is another, at all on that subject which are young enough
    for the broker to have called a retry a duplicate.
    """
    found: dict[str, int] = {}
    doubtful: dict[str, set[str]] = {}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def look(publication: Publication) -> None:
        event = publication.event
        async with gate:
            if event.expects is not None:
                first = {"seq": event.expects + 1, "next_by_subj": history_of(event)}
                stands = await look_at(connection, stream, first)
                if stands.is_of(publication):
                    found[event.id] = stands.position
                    return
            stands = await look_at(connection, stream, {"last_by_subj": publication.subject})
            if stands.is_of(publication):
                found[event.id] = stands.position
            elif stands.position:
                doubtful.setdefault(publication.subject, set()).add(event.id)

    async with asyncio.TaskGroup() as group:
        for publication in publications:
            group.create_task(look(publication))
    if doubtful:
        start = await _start_of_window(connection, stream)
        for subject, wanted in doubtful.items():
            await _walk(connection, stream, subject, start, wanted, found)
    return found


async def last_position(connection: BrokerConnection, stream: str, event: NewEvent) -> int:
    """The last position of the event's entity, as the stream's leader knows it; 0 when there is none."""
    return (await look_at(connection, stream, {"last_by_subj": history_of(event)})).position


async def _walk(
    connection: BrokerConnection, stream: str, subject: str, start: int, wanted: set[str], found: dict[str, int]
) -> None:
    missing = set(wanted)
    position = start - 1
    while missing:
        position, _, event_id = await look_at(connection, stream, {"seq": position + 1, "next_by_subj": subject})
        if not position:
            return
        if event_id in missing:
            missing.discard(event_id)
            found[event_id] = position


async def _start_of_window(connection: BrokerConnection, stream: str) -> int:
    """The first position that is young enough to count as a duplicate, by the broker's own clock."""
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


async def look_at(connection: BrokerConnection, stream: str, query: JsonObject) -> Stands:
    """One stored message, as the stream's leader has it. Raises BrokerUnavailable, BrokerMisconfigured."""
    answer = await connection.api(f"STREAM.MSG.GET.{stream}", query)
    code = error_code(answer)
    if code in _NOT_FOUND:
        return Stands(0, "", "")
    if code:
        raise error_of(answer, "a look at the stream")
    message = answer["message"]
    return Stands(int(message["seq"]), message["subject"], _id_of(base64.b64decode(message.get("data") or "")))


def _id_of(body: bytes) -> str:
    """The event id that a stored body states; "" when a foreign client stored something else."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    stated = document.get("id") if isinstance(document, dict) else None
    return stated if isinstance(stated, str) else ""
