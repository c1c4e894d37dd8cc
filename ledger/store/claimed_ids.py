"""Claimed message ids: tells a duplicate of our own event from another publisher's message with the same `Nats-Msg-Id`.

Any publisher may set any `Nats-Msg-Id`. The broker drops a message whose id it has seen within its duplicate window, on
whatever subject that was, and answers `duplicate` with the position of the first. So the first message is read: with
the same tenant, actor and event id it is ours, since the broker lets nobody else publish as that actor. Any other is a
claim, and our event is published again under a random message id. The event's own id does not change.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.store.duplicates import StoredMessage, get_message
from ledger.wire.publication import EXPECTED, EXPECTED_SUBJECT, MSG_ID, Publication, error_code, parse_answer
from ledger.wire.subjects import stated_by_in

_AT_ONCE = 64
# The broker checks message ids before this header, which no stream fulfils. A publication with it tells whether the id
# is known, and stores nothing.
_EXPECTED_LAST_ID = "Nats-Expected-Last-Msg-Id"


async def is_ours(connection: BrokerConnection, stream: str, position: int, publication: Publication) -> bool:
    """Whether the message at `position`, which the broker reports as the first with our message id, is our event.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    message = await get_message(connection, stream, {"seq": position}) if position else StoredMessage(0, "", "")
    if not message.position:
        raise BrokerUnavailable(f"position {position}, which the broker names as a duplicate, is not there: retry")
    same = stated_by_in(message.subject) == stated_by_in(publication.subject)
    return same and message.event_id == publication.event.id


async def known_positions(connection: BrokerConnection, batch: Sequence[Publication]) -> dict[str, int]:
    """The positions of the message ids that the broker knows, by event id; nothing is published.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    known: dict[str, int] = {}
    limit = asyncio.Semaphore(_AT_ONCE)

    async def probe(publication: Publication) -> None:
        kept = {name: value for name, value in publication.headers.items() if name not in (EXPECTED, EXPECTED_SUBJECT)}
        headers = kept | {_EXPECTED_LAST_ID: secrets.token_hex(16)}
        async with limit:
            answer = parse_answer((await connection.request(publication.subject, b"", headers)).data)
        if not error_code(answer) and answer.get("duplicate"):
            known[publication.event.id] = int(answer["seq"])

    async with asyncio.TaskGroup() as group:
        for publication in batch:
            group.create_task(probe(publication))
    return known


def renamed(publication: Publication) -> Publication:
    """The event under a random message id, which nobody can have claimed."""
    return publication._replace(headers={**publication.headers, MSG_ID: f"again-{secrets.token_hex(16)}"})
