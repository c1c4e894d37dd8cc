"""Pages for people at a node: their addresses in the HTTP interface, which they ask in process.

What makes pages is imported when somebody first looks at one: most nodes serve agents alone.
"""

from __future__ import annotations

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kledger.contract.language import Language
from producers.http.errors import STATUS
from producers.web.addresses import HOME, SOURCES


class PagesAtNode:
    """The pages of one app."""

    def __init__(self, app: ASGIApp, language: Language) -> None:
        self._app = app
        self._language = language
        self._interface: ASGIApp | None = None

    @property
    def routes(self) -> list[Route]:
        """The routes of every address of a page."""
        return [
            Route(path, self, include_in_schema=False)
            for path in (HOME, HOME + "/{rest:path}", SOURCES + "/{rest:path}")
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if self._interface is None:
            from producers.web.interface import WebInterface

            self._interface = WebInterface(self._app, lambda code: STATUS.get(code, 500), self._language)
        await self._interface(scope, receive, send)
