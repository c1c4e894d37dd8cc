"""A client of a node that is not there: the SDK over HTTP's own app, with a ledger in memory and the real folds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx

from kledger import DEFAULT_URL, LedgerClient
from tests.doors.live_desk import LiveDesk, live_desk
from tests.doors.one_app import app_of


@contextmanager
def in_process() -> Iterator[LedgerClient]:
    """An empty ledger, asked by its operator. It lives on the loop of the client's own thread."""
    stack = AsyncExitStack()

    async def opened() -> LiveDesk:
        return await stack.enter_async_context(live_desk())

    with LedgerClient(token="") as ledger:
        desk = ledger._portal.run(opened())
        transport = httpx.ASGITransport(app_of(desk))
        ledger._wire.connection.http = httpx.AsyncClient(transport=transport, base_url=DEFAULT_URL)
        try:
            yield ledger
        finally:
            ledger._portal.run(stack.aclose())


def head(ledger: LedgerClient) -> int:
    """The position up to which everything is folded."""
    return int(ledger.acting_as().list(limit=1)["position"])
