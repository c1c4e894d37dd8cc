"""The broker of a node that is stopped, started for one command, or a NATS server that runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from producers.cli.on_files import warnings_on_stderr

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.broker.access import BrokerAccess
    from ledger.broker.server import EmbeddedServer

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
    """The access to one of the two."""
    from ledger.broker.access import BrokerAccess

    if data is None:
        assert nats is not None  # one of them was given
        yield BrokerAccess.from_url(nats)
        return
    async with own_broker(data) as server:
        yield server.access


@asynccontextmanager
async def own_broker(data: Path, *, sync: bool = True) -> AsyncIterator[EmbeddedServer]:
    """The broker of a data directory, started for one command; without `sync` see `EmbeddedServer`.

    Where it does not answer because it cannot write, the error says that.
    """
    from kledger.contract.errors import BrokerUnavailable
    from ledger.broker.server import EmbeddedServer
    from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES

    server = EmbeddedServer(data / "broker", max_payload=RESTORE_PAYLOAD_BYTES, sync=sync)
    try:
        await server.start()
        yield server
    except BrokerUnavailable as error:
        if (cause := server.cause_of_trouble) is None:
            raise
        raise BrokerUnavailable(f"{cause}: make room, and run it again") from error
    finally:
        await server.stop()
