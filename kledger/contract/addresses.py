"""Addresses of servers: of a node, of Qdrant, of a model, and of the own machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of the own machine: a node there needs no token, and a client no proxy."""
NO_ADDRESS = "is no address: write http://HOST:PORT or https://HOST"
_LOGIN = re.compile(r"(?<=//)[^/?#]*@")
_LOGIN_OF_NONE = re.compile(r"(?<=//).*@")  # a password that nobody encoded may have a slash in it


def told_address(url: str) -> str:
    """The address as it may be told, to whoever reads an error or a log: without the login that it may have."""
    return _LOGIN.sub("", url, count=1) if is_http_address(url) else _LOGIN_OF_NONE.sub("", url)


def is_http_address(url: str) -> bool:
    """Whether this is http:// or https:// with a host, and a port that there may be."""
    # The parser drops line breaks and takes the rest for a host; who is asked later refuses it in words of its own.
    if not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if not host.isascii():
            host.encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:  # brackets that do not close, a port beyond 65535, a name that no server can have
        return False
