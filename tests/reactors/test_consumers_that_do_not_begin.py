"""A broker that lets the consumers of a node not begin is named as what it is, and not as a file of the node."""

from __future__ import annotations

from typing import Any

import nats.errors
import nats.js.errors
import pytest
from nats.js.client import JetStreamContext

from consumers.app import create_app
from consumers.reactors.subscription import Request
from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.broker.access import BrokerAccess
from ledger.event import JsonObject


class Nothing:
    """A reactor that is never asked."""

    name: str = "slim"
    kind: str = "slim"
    stages: tuple[str, ...] = ("requested",)
    at_once: int = 1

    async def react(self, request: Request) -> None:
        """Do nothing."""

    async def fail(self, request: Request, error: LedgerError) -> None:
        """Record nothing."""


async def health() -> JsonObject:
    return {}


@pytest.mark.parametrize(
    "error", [nats.errors.TimeoutError(), nats.errors.NoRespondersError(), nats.js.errors.ServiceUnavailableError()]
)
async def test_a_broker_that_lets_no_consumer_begin_is_unavailable(
    access: BrokerAccess, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(JetStreamContext, "pull_subscribe", fails)
    app = create_app(access, {}, health, "1", reactors=[Nothing()])
    try:
        with pytest.raises(BrokerUnavailable, match="did not let the node's consumers begin"):
            await app.start()
    finally:
        await app.stop()
