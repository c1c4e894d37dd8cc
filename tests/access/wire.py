"""A connection of the HTTP interface without a network: what it is sent, and what it writes."""

from __future__ import annotations

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from producers.access.limits import Limits
from producers.http.connections.bounded import bounded
from tests.patience import comes_true


class Wire:
    """The transport of one connection: what is written to it, piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.pieces.append(bytes(data))

    def get_extra_info(self, _name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def get_write_buffer_size(self) -> int:
        return 0

    def resume_reading(self) -> None:
        """Nothing was paused."""

    def pause_reading(self) -> None:
        """What comes is still taken."""


async def heard(app: ASGIApp, *pieces: bytes, answers: int = 1) -> Wire:
    """The wire of a connection on which these pieces have come, once it has answered."""
    config = uvicorn.Config(
        app, http=bounded(Limits()), lifespan="off", ws="none", proxy_headers=False, log_config=None
    )
    config.load()
    state = ServerState()
    connection = bounded(Limits())(config=config, server_state=state, app_state={})
    wire = Wire()
    connection.connection_made(wire)  # type: ignore[arg-type]  # as much of one as is used
    for piece in pieces:
        connection.data_received(piece)
    await comes_true(lambda: wire.closed or (not state.tasks and state.total_requests >= answers))
    connection.connection_lost(None)
    await comes_true(lambda: not state.tasks)
    return wire
