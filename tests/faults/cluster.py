"""Three real nats-server processes, run from the file that docs/how-to/cluster.md gives, to be killed one by one."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kledger.contract.errors import LedgerError
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server_config import find_binary
from ledger.event import JsonObject
from tests.free_ports import free_ports
from tests.journeys.running_node import ROOT
from tests.patience import PATIENCE

PAGE = ROOT / "docs" / "how-to" / "cluster.md"


@dataclass
class Member:
    """One server: its name, its ports, its files, and its process while it runs."""

    name: str
    port: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.directory / "nats.log").open("ab") as log:
            command = [str(find_binary()), "-c", str(self.directory / "nats.conf")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        """kill -9, and wait for its end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Cluster:
    """Three members on free ports of this machine."""

    def __init__(self, directory: Path) -> None:
        (text,) = re.findall(r"```conf\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        ports = free_ports(6)
        names = ("n1", "n2", "n3")
        routes = dict(zip(names, ports[3:], strict=True))
        self.members: dict[str, Member] = {}
        for name, port in zip(names, ports, strict=False):
            home = directory / name
            home.mkdir(parents=True)
            others = [other for other in names if other != name]
            mine = text.replace("server_name: n1", f"server_name: {name}").replace("0.0.0.0:4222", f"127.0.0.1:{port}")
            mine = mine.replace("0.0.0.0:6222", f"127.0.0.1:{routes[name]}")
            mine = mine.replace("/var/lib/kledger/nats", str(home / "nats"))
            for written, other in zip(("n2:6222", "n3:6222"), others, strict=True):
                mine = mine.replace(written, f"127.0.0.1:{routes[other]}")
            (home / "nats.conf").write_text(mine)
            self.members[name] = Member(name, port, home)

    @property
    def url(self) -> str:
        """What a node's --nats takes."""
        hosts = [f"127.0.0.1:{member.port}" for member in self.members.values()]
        return ",".join(
            [f"nats://node:change-the-nodes-password@{hosts[0]}", *(f"nats://{host}" for host in hosts[1:])]
        )

    @property
    def access(self) -> BrokerAccess:
        return BrokerAccess.from_url(self.url)

    async def stream(self) -> JsonObject:
        """What the cluster says of the log, once a leader answers and every copy is current."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                connection = await BrokerConnection.open(self.access, "admin", name="test-look")
                try:
                    told = await connection.api("STREAM.INFO.LEDGER", timeout=2)
                finally:
                    await connection.close()
                copies = told.get("cluster", {})
                if copies.get("leader") and all(one.get("current") for one in copies.get("replicas", [])):
                    return told
            except LedgerError:
                pass
            assert time.monotonic() < deadline, "the cluster has no leader"
            await asyncio.sleep(0.1)

    async def leader(self) -> Member:
        """The member that leads the log's stream."""
        return self.members[(await self.stream())["cluster"]["leader"]]


@contextmanager
def three_members(directory: Path) -> Iterator[Cluster]:
    """A cluster that runs until the end of the body."""
    with two_of_three_members(directory) as cluster:
        cluster.members["n3"].start()
        yield cluster


@contextmanager
def two_of_three_members(directory: Path) -> Iterator[Cluster]:
    """The same, with one server that has not been started yet, n3."""
    cluster = Cluster(directory)
    for name in ("n1", "n2"):
        cluster.members[name].start()
    try:
        yield cluster
    finally:
        for member in cluster.members.values():
            member.kill()
