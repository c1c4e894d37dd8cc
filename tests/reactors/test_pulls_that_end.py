"""A pull that ends with an error, as one that finds nothing does, leaves nothing behind when it is begun anew."""

from __future__ import annotations

import asyncio

from faststream.nats import NatsBroker

from consumers.reactors.subscription import Request, subscribe
from kledger.contract.errors import LedgerError

PULLS = 50


class _Idle:
    name: str = "evolution"
    kind: str = "evolution"
    stages: tuple[str, ...] = ("requested", "decided")
    at_once: int = 4

    async def react(self, request: Request) -> None: ...

    async def fail(self, request: Request, error: LedgerError) -> None: ...


def test_pulls_that_end_with_an_error_are_not_kept() -> None:
    async def kept() -> list[int]:
        broker = NatsBroker(logger=None)
        broker._setup_logger()  # as a connection does, which needs a server
        subscribe(broker, "default", [_Idle()], "_INBOX_node")
        counts = []
        for subscriber in broker.subscribers:
            pulls, enough = 0, asyncio.Event()

            async def pull(enough: asyncio.Event = enough) -> None:
                nonlocal pulls
                pulls += 1
                if pulls < PULLS:
                    raise TimeoutError
                enough.set()
                await asyncio.Event().wait()

            subscriber.add_task(pull)  # type: ignore[attr-defined]  # what FastStream begins its pulls with
            await asyncio.wait_for(enough.wait(), 60)
            assert pulls == PULLS
            counts.append(len(subscriber.tasks))  # type: ignore[attr-defined]
            await subscriber.stop()
            assert not subscriber.tasks  # type: ignore[attr-defined]
        return counts

    assert asyncio.run(kept()) == [1, 1]
