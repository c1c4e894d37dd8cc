"""Did somebody else claim the message id of our event? Whoever may publish at all may set any `Nats-Msg-Id`.

The broker drops a message whose id it has seen within its window, on whatever subject that came, and answers
`duplicate` with the position of the first. So the first one is looked at: one of the same tenant and actor with the
same event id is ours, since the broker lets nobody else publish as them. Any other is a claim, and what it claimed is
published again under a message id that nobody can guess. The event's own id stays as it is.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.store.duplicates import Stands, look_at
from ledger.wire.publication import EXPECTED, EXPECTED_SUBJECT, MSG_ID, Publication, error_code, parse_answer
from ledger.wire.subjects import stated_by_in

_AT_ONCE = 64
# The broker compares message ids before it looks at this header, which no stream fulfils: asked with it, it says what
# it knows of an id and keeps nothing.
_EXPECTED_LAST_ID = "Nats-Expected-Last-Msg-Id"


async def is_ours(connection: BrokerConnection, stream: str, position: int, publication: Publication) -> bool:
    """Whether the message at `position`, which the broker calls a duplicate of ours, is of the same identity.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    stands = await look_at(connection, stream, {"seq": position}) if position else Stands(0, "", "")
    if not stands.position:
        raise BrokerUnavailable(f"position {position}, which the broker names as a duplicate, is not there: retry")
    same = stated_by_in(stands.subject) == stated_by_in(publication.subject)
    return same and stands.event_id == publication.event.id


async def known_positions(connection: BrokerConnection, batch: Sequence[Publication]) -> dict[str, int]:
    """Where the broker keeps the message ids of a batch that it knows, by event id; nothing is published.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    known: dict[str, int] = {}
    places = asyncio.Semaphore(_AT_ONCE)

    async def ask(publication: Publication) -> None:
        headers = {name: said for name, said in publication.headers.items() if name not in (EXPECTED, EXPECTED_SUBJECT)}
        async with places:
            asked = headers | {_EXPECTED_LAST_ID: secrets.token_hex(16)}
            answer = parse_answer((await connection.request(publication.subject, b"", asked)).data)
        if not error_code(answer) and answer.get("duplicate"):
            known[publication.event.id] = int(answer["seq"])

    async with asyncio.TaskGroup() as group:
        for publication in batch:
            group.create_task(ask(publication))
    return known


def renamed(publication: Publication) -> Publication:
    """The same event under a message id that nobody can have claimed."""
    return publication._replace(headers={**publication.headers, MSG_ID: f"again-{secrets.token_hex(16)}"})
