"""What pages are made with: the sessions of the node, its client, and the description of a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from kledger.client.clients import AsyncLedgerClient
from kledger.contract.scopes import Caller
from producers.web.sessions import Sessions
from producers.web.visit import Visit


@dataclass(frozen=True, slots=True)
class Site:
    """What every page may use: `client` makes one that asks the node as a caller, with a token or without ("")."""

    sessions: Sessions
    client: Callable[[Caller, str], AsyncLedgerClient]


Handle = Callable[[Site, Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Page:
    """An address and what answers it; an `open` one needs nobody signed in."""

    path: str
    handle: Handle
    methods: tuple[str, ...] = ("GET",)
    open: bool = False


def change(path: str, handle: Handle) -> Page:
    """An address that changes something: it takes forms alone."""
    return Page(path, handle, ("POST",))
