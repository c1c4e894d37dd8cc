"""A client of a node that is not there: the SDK over HTTP's own app, with a ledger in memory and the real folds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx

from kledger import DEFAULT_URL, LedgerClient
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.transport.portal import Portal
from tests.doors.live_desk import LiveDesk, live_desk
from tests.doors.one_app import app_of


@contextmanager
def in_process() -> Iterator[LedgerClient]:
    """An empty ledger, asked by its operator. It lives on a loop of a thread of its own, as the client does here."""
    stack = AsyncExitStack()

    async def opened() -> LiveDesk:
        return await stack.enter_async_context(live_desk())

    with LedgerClient(token="") as ledger:
        portal = ledger._runner = Portal()
        desk = portal.run(opened())
        transport = httpx.ASGITransport(app_of(desk))
        http = httpx.AsyncClient(transport=transport, base_url=DEFAULT_URL)
        ledger._wire.connection.transport = HttpxTransport.over(http)
        try:
            yield ledger
        finally:
            portal.run(stack.aclose())


def head(ledger: LedgerClient) -> int:
    """The position up to which everything is folded."""
    return int(ledger.acting_as().list(limit=1)["position"])
