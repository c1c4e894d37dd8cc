"""The broker of a node that is stopped, started for one command, or a NATS server that runs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.broker.access import BrokerAccess

T = TypeVar("T")


def on_broker(data: Path | None, nats: str | None, work: Callable[[BrokerAccess], Awaitable[T]]) -> T:
    """Run `work` against the broker of a data directory, started for it, or against a running one.

    One of the two is given. Raises DataDirectoryInUse, and what `work` raises.
    """
    import asyncio

    async def run() -> T:
        async with broker(data, nats) as access:
            return await work(access)

    with warnings_on_stderr():
        return asyncio.run(run())


@asynccontextmanager
async def broker(data: Path | None, nats: str | None) -> AsyncIterator[BrokerAccess]:
    from ledger.broker.access import BrokerAccess
    from ledger.broker.server import EmbeddedServer
    from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES

    if data is None:
        assert nats is not None  # one of them was given
        yield BrokerAccess.from_url(nats)
        return
    server = EmbeddedServer(data / "broker", max_payload=RESTORE_PAYLOAD_BYTES)
    try:
        yield await server.start()
    finally:
        await server.stop()


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Log to stderr, warnings alone: stdout holds the answer, and the embedded broker's info lines are noise."""
    import logging

    import structlog

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        yield
    finally:
        structlog.configure(**before)
