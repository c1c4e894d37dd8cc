"""Which nodes are reached by plain HTTP, without TLS and without a proxy."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from kledger.contract.addresses import LOOPBACK

DEFAULT_PORT = 80


def is_reached_plainly(address: str) -> bool:
    """Whether sockets alone will do for this address: http://, no password in it, and no proxy before it.

    Where the environment names any proxy, only the caller's own machine is surely reached without one.
    """
    parts = urlsplit(address)
    if parts.scheme != "http" or "@" in parts.netloc or not address.isascii():
        return False
    return parts.hostname in LOOPBACK or not any(name.lower().endswith("_proxy") for name in os.environ)
