"""Addresses of a node."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from kledger.contract.errors import BrokerMisconfigured


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Addresses of a running node."""

    http: str
    nats: str
    quack: int | None
    position: int
    """Checkpoint of the view when the node began to answer."""


def host_and_port(address: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises BrokerMisconfigured."""
    parts = urlsplit(f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise BrokerMisconfigured(f"{address!r} is not HOST:PORT: write for example 127.0.0.1:8420")
    return host, port
