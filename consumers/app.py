"""FastStream application of a node: broker, lifespan, health over NATS, AsyncAPI, reactors.

It hosts the projector and the vector feed, which read with loops of their own: a projector needs every event
once and in order, and FastStream's batch subscribers cannot guarantee that (docs/decisions). Reactors, whose messages
have independent, idempotent effects, are FastStream subscribers of this broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import nats.errors
import structlog
from faststream import FastStream
from faststream.nats import NatsBroker
from faststream.security import SASLPlaintext
from faststream.specification import AsyncAPI
from nats.aio.client import Client

from consumers.reactors.subscription import Reactor, subscribe
from kledger.contract.errors import BrokerUnavailable
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import close_client
from ledger.broker.nats_parser import QuickClient
from ledger.event import DEFAULT_ORG, JsonObject

log = structlog.get_logger(__name__)

HEALTH_SUBJECT = "kledger.health"
PAUSE = 1.0  # seconds before a loop that failed begins again
BEGIN_SECONDS = 60.0  # for each consumer to be told or made, on a machine that is busy
DRAIN_SECONDS = 10.0  # grace period for reactors when the node stops, so that a billed answer is still recorded

Loop = Callable[[], Awaitable[None]]


class _Client(QuickClient):
    """A client for events of any bytes. It hears no headers of them: the library takes some for the broker's status."""

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: Any) -> None:
        is_event = reply.startswith(b"$JS.ACK.")
        await super()._process_msg(sid, subject, reply, data, None if is_event else headers)


class _Broker(NatsBroker):
    """A broker that hears events of any bytes, and closes without an error even when the server is gone."""

    async def start(self) -> None:
        """Connect, and begin to hear what comes. Raises BrokerUnavailable."""
        try:
            await super().start()
        except (nats.errors.Error, TimeoutError) as error:  # the library's own is a TimeoutError alone: an OSError
            raise BrokerUnavailable(
                f"the broker did not let the node's consumers begin ({error}): is it overloaded? Start the node again"
            ) from error

    async def _connect(self) -> Client:
        connection = _Client()
        await connection.connect(**self._connection_kwargs)
        self.config.connect(connection)
        return connection

    async def stop(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> None:
        try:
            await super().stop(exc_type, exc_val, exc_tb)
        except (nats.errors.Error, RuntimeError, asyncio.CancelledError) as error:  # see close_client
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            log.info("the broker is gone as the node stops", error=repr(error))
            if self._connection is not None:
                await close_client(self._connection)


def create_app(
    access: BrokerAccess,
    loops: Mapping[str, Loop],
    health: Callable[[], Awaitable[JsonObject]],
    version: str,
    *,
    org: str = DEFAULT_ORG,
    reactors: Sequence[Reactor] = (),
) -> FastStream:
    """The application of one node. `loops` run from its start to its stop; `health` answers HEALTH_SUBJECT.

    `reactors` process the requests among the events of the tenant `org`.
    """
    user = access.credentials("node")
    broker = _Broker(
        access.urls,
        # not in the addresses: a cluster announces more servers, whose addresses have no credentials
        security=SASLPlaintext(*user) if user else None,
        inbox_prefix=access.inbox_prefix("node"),
        name="kledger-app",
        max_reconnect_attempts=-1,
        js_options={"timeout": BEGIN_SECONDS},
        graceful_timeout=DRAIN_SECONDS,
        logger=None,
    )
    app = FastStream(
        broker,
        logger=None,
        specification=AsyncAPI(title="Knowledge Ledger node", version=version),
    )

    @broker.subscriber(HEALTH_SUBJECT, description="Ask with any request; the answer is the node's health.")
    async def answer_health(_asked: bytes) -> JsonObject:
        return await health()

    subscribe(broker, org, reactors, access.inbox_prefix("node"))

    tasks: list[asyncio.Task[None]] = []

    async def start_loops() -> None:
        tasks.extend(asyncio.create_task(_run(name, loop), name=name) for name, loop in loops.items())

    async def stop_loops() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    app.after_startup(start_loops)
    app.after_shutdown(stop_loops)  # last, because a finishing reactor still waits for the view to have its events
    return app


async def _run(name: str, loop: Loop) -> None:
    """Run a loop until it returns. After an unexpected error it is restarted, from its checkpoint."""
    while True:
        try:
            return await loop()
        except Exception:
            log.exception("a loop of the node failed and begins again", loop=name, pause=PAUSE)
            await asyncio.sleep(PAUSE)
