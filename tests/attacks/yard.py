"""A nats-server with two publishers, and a node that folds what it keeps: where a foreign client attacks."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats
from nats.aio.client import Client

from ledger.broker.publisher_config import Publisher, Written, write_nats_config
from ledger.broker.server_config import find_binary
from tests.free_ports import free_address
from tests.journeys.running_node import RunningNode, running, until
from tests.patience import PATIENCE

SCRIBE, BOB = "agent:scribe", "user:bob"


@dataclass
class Yard:
    """A nats-server with two publishers, and a node that folds what it keeps."""

    url: str
    server: subprocess.Popen[bytes]
    directory: Path
    written: Written
    node: RunningNode

    def publisher(self, actor: str) -> Publisher:
        (found,) = [one for one in self.written.publishers if one.actor == actor]
        return found

    async def connect(self, actor: str, **changed: Any) -> Client:
        one = self.publisher(actor)
        asked = {"user": one.user, "password": one.password, "inbox_prefix": one.inbox, **changed}
        return await nats.connect(self.url, allow_reconnect=False, **asked)


@contextmanager
def opened(directory: Path, env: dict[str, str] | None = None) -> Iterator[Yard]:
    """A yard below `directory`; `env` is what the node's environment has beside."""
    listen = free_address()
    written = write_nats_config(directory / "broker", [SCRIBE, BOB], listen=listen)
    with (directory / "nats.log").open("wb") as log:
        server = subprocess.Popen([find_binary(), "-c", written.config], stdout=log, stderr=log)
    try:
        until(lambda: _listens(listen), "the server listens")
        env = {"KLEDGER_NATS_CREDENTIALS": str(written.credentials), **(env or {})}
        with running(directory / "data", "--nats", f"nats://{listen}", "--quack", "off", env=env) as node:
            yield Yard(f"nats://{listen}", server, directory / "broker", written, node)
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
