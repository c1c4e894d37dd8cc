"""Where is a node reached?"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from kledger.contract.errors import BrokerMisconfigured


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """Where a running node is reached."""

    http: str
    nats: str
    quack: int | None
    position: int
    """Up to which the view had folded the log when the node began to answer."""


def host_and_port(address: str) -> tuple[str, int]:
    """Take HOST:PORT apart. Raises BrokerMisconfigured."""
    parts = urlsplit(f"//{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise BrokerMisconfigured(f"{address!r} is not HOST:PORT: write for example 127.0.0.1:8420")
    return host, port
