"""A broker that answers reads and takes no events makes its node unhealthy, until it takes them again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.broker.access import LEDGER_STREAM
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.store import writable
from ledger.store.jetstream import JetStreamLedger
from ledger.store.writable import Writable
from ledger.wire.publication import NO_SPACE, error_code, error_of
from tests.conftest import saved
from tests.faults.test_health import health
from tests.journeys.running_node import RunningNode, until


@asynccontextmanager
async def as_admin(server: EmbeddedServer | RunningNode) -> AsyncIterator[BrokerConnection]:
    admin = await BrokerConnection.open(server.access, "admin", name="test-admin")
    try:
        yield admin
    finally:
        await admin.close()


async def set_otherwise(admin: BrokerConnection, **settings: Any) -> Callable[[], Awaitable[None]]:
    """Give the stream these settings; the function that is returned gives it those of before."""
    before = (await admin.api(f"STREAM.INFO.{LEDGER_STREAM}"))["config"]

    async def to(config: dict[str, Any]) -> None:
        assert not error_code(await admin.api(f"STREAM.UPDATE.{LEDGER_STREAM}", config))

    await to({**before, **settings})
    return lambda: to(before)


async def why_not(ledger: JetStreamLedger) -> str | None:
    return await ledger.hindrance(await ledger.status(), "default")


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedServer]:
    """A broker of the test's own, whose ledgers ask it each time."""
    monkeypatch.setattr(writable, "_ASKED_AGAIN_AFTER", 0.0)
    started = EmbeddedServer(tmp_path / "broker")
    await ensure_stream(await started.start())
    yield started
    await started.stop()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_bytes": 1000, "discard": "new"}, "max_bytes is 1000 and must be -1"),
        ({"max_msgs": 1, "discard": "new"}, "max_msgs is 1 and must be -1"),
        ({"max_msgs": 1_000_000}, "max_msgs is 1000000 and must be -1"),  # the oldest would be lost
        ({"max_age": 10**18}, "max_age is 1000000000000000000 and must be 0"),
        ({"subjects": ["elsewhere.>"]}, "subjects is ['elsewhere.>'] and must be"),
    ],
    ids=str,
)
async def test_settings_that_lose_or_refuse_events_are_told_before_anybody_writes_and_no_more_once_they_are_mended(
    server: EmbeddedServer, settings: dict[str, Any], told: str
) -> None:
    ledger = await JetStreamLedger.connect(server.access)
    await ledger.append(saved("before"))
    assert await why_not(ledger) is None
    async with as_admin(server) as admin:
        mended = await set_otherwise(admin, **settings)
        assert told in str(await why_not(ledger))
        await mended()
    assert await why_not(ledger) is None
    assert (await ledger.append(saved("after"))).position == 2  # a probe keeps nothing
    await ledger.close()


async def test_a_sealed_stream_is_told(server: EmbeddedServer) -> None:
    ledger = await JetStreamLedger.connect(server.access)
    async with as_admin(server) as admin:
        await set_otherwise(admin, sealed=True)
    assert "sealed is True" in str(await why_not(ledger))
    await ledger.close()


async def test_a_user_who_may_not_publish_any_more_is_told_though_nobody_writes(server: EmbeddedServer) -> None:
    ledger = await JetStreamLedger.connect(server.access, role="reader")
    assert "the broker user of role 'reader' may not do this" in str(await why_not(ledger))
    await ledger.close()


@pytest.mark.parametrize("code", sorted(NO_SPACE))
async def test_an_append_that_met_a_limit_counts_until_one_succeeds_or_it_is_long_ago(
    server: EmbeddedServer, code: int
) -> None:
    async with as_admin(server) as admin:
        info = await admin.api(f"STREAM.INFO.{LEDGER_STREAM}")
        now = [0.0]
        of = Writable(admin, lambda: now[0])
        answer = {"error": {"err_code": code, "description": "limits exceeded"}}
        error: LedgerError = of.met(error_of(answer, "an event"), code)
        assert isinstance(error, BrokerUnavailable)
        assert await of.hindrance(info["config"], "default") == error.message
        of.wrote()
        assert await of.hindrance(info["config"], "default") is None
        of.met(error, code)
        now[0] = writable._REMEMBERED_FOR
        assert await of.hindrance(info["config"], "default") is None


async def test_whoever_asks_often_asks_the_broker_seldom(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    async with as_admin(server) as admin:
        config = (await admin.api(f"STREAM.INFO.{LEDGER_STREAM}"))["config"]
        request = admin.request

        async def counted(subject: str, *given: Any, **more: Any) -> Any:
            asked.append(subject)
            return await request(subject, *given, **more)

        monkeypatch.setattr(admin, "request", counted)
        monkeypatch.setattr(writable, "_ASKED_AGAIN_AFTER", 5.0)
        now = [0.0]
        of = Writable(admin, lambda: now[0])
        for now[0] in (0.0, 1.0, 4.9, 5.0, 6.0):
            assert await of.hindrance(config, "default") is None
    assert len(asked) == 2


def test_a_node_whose_stream_is_full_is_unhealthy_before_anybody_writes_and_well_when_it_has_room(
    node: RunningNode,
) -> None:
    until(lambda: health(node)[0] == 200, "the node is healthy")

    async def look() -> None:
        async with as_admin(node) as admin:
            mended = await set_otherwise(admin, max_bytes=1, discard="new")
            status, told = await asyncio.to_thread(health, node)
            await mended()
        assert status == 503
        assert any("max_bytes is 1 and must be -1" in reason for reason in told["reasons"]), told

    asyncio.run(look())
    well = (200, {"status": "healthy", "reasons": []})
    until(lambda: health(node) == well, "what the node itself could not write meanwhile is written")
