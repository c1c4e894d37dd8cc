"""Where a node is: its addresses and its data directory, which no other one has."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from kledger import DEFAULT_URL
from kledger.contract.addresses import NO_ADDRESS, is_http_address
from kledger.contract.errors import DataDirectoryInUse, NodeMisconfigured

HTTP = DEFAULT_URL.removeprefix("http://")
LOCK = "node.lock"


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Addresses of a running node."""

    http: str
    nats: str
    quack: int | None
    position: int
    """Checkpoint of the view when the node began to answer."""


def host_and_port(address: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises NodeMisconfigured."""
    try:
        parts = urlsplit(f"//{address}" if address.isprintable() else "")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        meant = f"127.0.0.1:{address}" if address.isdecimal() else f"for example {HTTP}"
        raise NodeMisconfigured(f"{address!r} is not HOST:PORT: write {meant}")
    return host, port


@contextmanager
def reserved(host: str, port: int) -> Iterator[socket.socket]:
    """A socket bound to the address, on which nothing listens yet; port 0 is a free one. Raises NodeMisconfigured.

    A node takes its address before it starts anything else, so that a taken one is said at once.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the one of a node that has just stopped
        if sock.family is socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            sock.bind((host, port))
        except OSError as error:
            raise cannot_listen(host, port, error) from error
        yield sock


def cannot_listen(host: str, port: int, error: OSError) -> NodeMisconfigured:
    """Why a node cannot serve an address, and what to do."""
    asked = " Is another node running there?" if error.errno == errno.EADDRINUSE else ""
    return NodeMisconfigured(
        f"the node cannot listen on {host}:{port} ({error.strerror or error}).{asked} Choose another address with "
        "--http HOST:PORT, and name it to commands with --url or KLEDGER_URL"
    )


def take(lock: IO[str], data: Path) -> None:
    """Take the lock of a data directory until the file is closed. Raises DataDirectoryInUse."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read(20).strip()
        raise DataDirectoryInUse(
            f"another node runs on {data.resolve()}{f' (process {holder})' if holder.isdecimal() else ''}: "
            "stop it, or choose another directory with --data, and another address with --http"
        ) from error


def check_addresses(data: Path, *, qdrant: str | None) -> None:
    """Raise NodeMisconfigured where a part of the node would end for its address, long after it began to start."""
    if not str(data.resolve()).isprintable():
        raise NodeMisconfigured(
            f"the data directory {str(data)!r} has characters that cannot be printed, which the broker's configuration "
            "cannot name: choose another one with --data"
        )
    if qdrant is not None and not is_http_address(qdrant):
        raise NodeMisconfigured(f"--qdrant {qdrant!r} {NO_ADDRESS}, for example http://127.0.0.1:6333")


def check_free(data: Path, address: str) -> None:
    """Raise what the start of a node would raise last where its directory or its address is taken.

    Raises DataDirectoryInUse, NodeMisconfigured. It loads nothing of a node, which takes seconds.
    """
    with contextlib.suppress(OSError), (data / LOCK).open("r+") as lock:
        take(lock, data)
    with reserved(*host_and_port(address)):
        pass
