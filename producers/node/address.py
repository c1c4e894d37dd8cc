"""Addresses of a node."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from kledger.contract.errors import NodeMisconfigured


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
    parts = urlsplit(f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        meant = f"127.0.0.1:{address}" if address.isdecimal() else "for example 127.0.0.1:8420"
        raise NodeMisconfigured(f"{address!r} is not HOST:PORT: write {meant}")
    return host, port
