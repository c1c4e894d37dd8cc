"""Why no node answered at an address, or none can, in words that say what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from kledger import DEFAULT_URL
from kledger.client.slips.own_names import QUERY
from kledger.client.transport.exchange import NotHttp
from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import LedgerError

LONG = 60_000  # characters of an address, beyond which it is its length that is refused


def is_refused(error: Exception) -> bool:
    """Whether nothing listens there."""
    return any(isinstance(each, ConnectionRefusedError) for each in _causes(error))


def wrong_address(error: Exception, address: str) -> str | None:
    """What is wrong with the address itself, and what to do; None where a node may answer there a moment later."""
    for each in _causes(error):
        if isinstance(each, NotHttp):
            return (
                f"({each}: another program answers there); check the address: kledger up prints a node's as it starts"
            )
        if isinstance(each, socket.gaierror) and each.errno == socket.EAI_NONAME:
            return f"(nobody knows a host {urlsplit(address).hostname!r}); check the address"
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"(its certificate is refused: {each.verify_message}); check the address and the certificate"
        if isinstance(each, ssl.SSLError) and not isinstance(each, ssl.SSLEOFError):
            plain = address.replace("https://", "http://", 1)
            return f"(no TLS there); a node speaks plain HTTP where no proxy stands before it: try {plain}"
    return None


def wrong_path(address: str) -> str | None:
    """What is wrong with an address behind which no node was found, where it has a path; None where it has none."""
    parts = urlsplit(address)
    if not parts.path.strip("/"):
        return None
    return (
        f"at the path {parts.path} of {address} there is no node: write {parts.scheme}://{parts.netloc}, unless a "
        "proxy serves one at a path, and then check it"
    )


def to_start(address: str) -> str:
    """How to start a node at the address, or what to check where that is another machine's."""
    parts = urlsplit(address)
    if parts.hostname not in LOOPBACK:
        return "check the address, or start one with: kledger up, on that machine"
    if parts.port is None:
        return f"an address has a port, as {DEFAULT_URL} has; start one with: kledger up"
    if address.rstrip("/") == DEFAULT_URL:
        return "start one with: kledger up"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"check the address, or start one with: kledger up --http {host}:{parts.port}"


def silent(address: str, seconds: float) -> str:
    """That what listens at an address took a request and said nothing, and what that may be."""
    return (
        f"no node answers at {address} (no answer within {seconds:g} s): it took the request, so a node there is "
        "busy or stands still, or it is another program"
    )


def may_be_done(error: LedgerError) -> LedgerError:
    """The error of a change that a node took and never answered: made again it may count twice."""
    told = "what was asked for may be done all the same: look before you ask for it again"
    changed = type(error)(f"{error.message}; {told}", **{**error.details, "may_be_done": True})
    changed.__cause__ = error.__cause__
    return changed


def no_address(path: str, params: Mapping[str, Any], error: Exception) -> str:
    """Why no address holds a request, and what to do: say less in its query, or a shorter id in its path."""
    said = {name: len(quote(str(value), errors="replace")) for name, value in params.items()}
    longest = max(said, key=lambda name: said[name], default="")
    refused = f"{path[:80]!r} cannot be asked for ({error})"
    if len(path) + sum(said.values()) < LONG:
        return refused
    which = QUERY.get(longest, longest) if said.get(longest, 0) > len(path) else "the id"
    instead = "; recall takes a long message" if which == QUERY["q"] else ""
    return f"{refused}: the address is too long: {which} has to be shorter{instead}"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
