"""Apps of many desks in one process, over routes that are built once, and described once.

FastAPI takes a third of a second to build the routes and half a second to describe them, and a test that asks through
HTTP opens a desk of its own.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from producers.http.app import create_app, routes_of
from producers.operations.desk import Desk

_asked: ContextVar[Desk] = ContextVar("asked")
_described: list[dict[str, Any]] = []
"""The OpenAPI document, once an app was asked for it."""


class AskedDesk:
    """The desk of the app that answers the request."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_asked.get(), name)


@dataclass
class Asking:
    """Around an app: while it answers, its desk is the one that is asked."""

    app: ASGIApp
    desk: Desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        before = _asked.set(self.desk)
        try:
            await self.app(scope, receive, send)
        finally:
            _asked.reset(before)


@cache
def routes() -> list[BaseRoute]:
    """The routes of every desk of this process."""
    return routes_of(cast(Desk, AskedDesk()))


def app_of(desk: Desk, **options: Any) -> FastAPI:
    """The app of a desk, as `create_app` makes it."""
    app = create_app(desk, **options, routes=routes())
    app.add_middleware(Asking, desk=desk)
    of_its_own = app.openapi

    def openapi() -> dict[str, Any]:
        if not _described:
            _described.append(of_its_own())
        return _described[0]

    app.openapi = openapi  # type: ignore[method-assign]  # as the product describes it
    return app
