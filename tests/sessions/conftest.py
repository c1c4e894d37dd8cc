"""Streams of words of both kinds, and a door to sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ledger.broker.server import EmbeddedServer
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.port import SessionStream
from tests.conftest import remove_streams
from tests.doors.http_door import Door, http_door


@pytest.fixture(params=["jetstream", "memory"])
async def stream(request: pytest.FixtureRequest) -> AsyncIterator[SessionStream]:
    """An empty stream of each kind, for what both must do."""
    if request.param == "memory":
        yield MemorySessionStream()
        return
    server: EmbeddedServer = request.getfixturevalue("embedded_server")
    await remove_streams(server.access)
    await ensure_sessions_stream(server.access)
    on_broker = await JetStreamSessions.open(server.access)
    yield on_broker
    await on_broker.close()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened
