"""The HTTP interface: its routes and errors, metrics, and the guard around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from ledger.installed import PRODUCT, version
from ledger.runtime import tracing
from producers.access.book import NO_TOKENS, TokenBook
from producers.access.limits import Limits, limits_from_environment
from producers.http import errors, metrics, pages
from producers.http.admission import Admission
from producers.http.description import DESCRIPTION, LICENSE, SERVERS, describe
from producers.http.guard import Guard
from producers.http.mcp_mount import McpAtNode
from producers.http.repeated import Repeated
from producers.http.routes import (
    admin,
    bulk,
    documents,
    evolutions,
    extractions,
    knowledge,
    memory,
    overview,
    profiles,
    projects,
    recall,
    recalls,
    refused,
    resources,
    scope_types,
    sessions,
    slims,
)
from producers.http.routes.direct import DirectSearch
from producers.http.routes.direct_items import DirectItems
from producers.http.web_mount import PagesAtNode
from producers.operations.desk import Desk
from producers.operations.own_writes import NOTHING, OwnWrites


class _App(FastAPI):
    """An app whose requests begin at the first layer of ours, which is the guard.

    The framework has layers around it: for what no layer within has answered, and for spans of its own. The guard
    answers everything, and nobody asks for spans where the node makes none.
    """

    _first: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; what is none, and requests of which spans are made, go through all layers."""
        if scope["type"] != "http" or tracing.under_way():
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self
        await (self._first or self._found())(scope, receive, send)

    def _found(self) -> ASGIApp:
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        ours: Any = self.user_middleware[0].cls
        layer: Any = self.middleware_stack
        while type(layer) is not ours:
            layer = layer.app
        first: ASGIApp = layer
        self._first = first
        return first


def create_app(
    desk: Desk,
    *,
    on_loopback: bool = True,
    tokens: TokenBook = NO_TOKENS,
    limits: Limits | None = None,
    routes: Sequence[BaseRoute] = (),
) -> FastAPI:
    """The app of one node. `on_loopback`: without tokens, it is asked under a name of its own machine alone.

    `routes` are the desk's, where somebody has them already: to build them is nearly all that an app takes.
    """
    app = _App(
        title="Knowledge Ledger",
        version=version(PRODUCT),
        description=DESCRIPTION,
        license_info=LICENSE,
        servers=SERVERS,
        # The framework's pages load scripts from elsewhere; `pages` renders one that does not.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # served by `pages` too, as every route is
        redirect_slashes=False,
        lifespan=_serving_tools,
    )
    app.state.desk = desk  # for what is asked before a route is: of which types of scopes a caller may be
    app.state.on_loopback = on_loopback
    counted = metrics.Metrics(desk)
    app.state.own_writes = own = OwnWrites(since=desk.held_at_start if desk is not None else NOTHING)
    app.state.repeated = Repeated()
    limits = limits or limits_from_environment()
    app.state.mcp = mcp = McpAtNode(app, limits, counted.called)
    if desk is not None:  # None describes the app, and serves nothing
        desk.tally.took = counted.took
        desk.tally.wrote = own.appended
        desk.tally.saw = own.saw
    app.router.routes.extend(routes or routes_of(desk))
    for router in (metrics.routes(desk, counted), pages.routes(app, mcp.path)):
        app.router.routes.extend(router.routes)
    app.router.routes.append(mcp.route)
    if desk is not None:
        app.state.pages = people = PagesAtNode(app, desk.language, desk.view)
        app.router.routes.extend(people.routes)
    errors.install(app)
    admission = Admission(tokens, limits, counted, on_loopback)
    direct = (DirectSearch(app, app.router.routes), DirectItems(app, app.router.routes))
    app.add_middleware(Guard, metrics=counted, admission=admission, direct=direct)
    describe(app)
    return app


def routes_of(desk: Desk) -> list[BaseRoute]:
    """Every route that asks a desk for something, as an app takes it: each is whole, see `routing`."""
    routers = (
        *slims.routes(desk),
        *overview.routes(desk),
        *bulk.routes(desk),
        *knowledge.routes(desk),
        *memory.routes(desk),
        *evolutions.routes(desk),
        *extractions.routes(desk),
        *profiles.routes(desk),
        *projects.routes(desk),
        *resources.routes(desk),
        *documents.routes(desk),
        *scope_types.routes(desk),
        *recall.routes(desk),
        *recalls.routes(desk),
        *sessions.routes(desk),
        *admin.routes(desk),
        *refused.routes(desk),
    )
    return [route for router in routers for route in router.routes]


@asynccontextmanager
async def _serving_tools(app: FastAPI) -> AsyncIterator[None]:
    """MCP is answered while the app runs."""
    async with app.state.mcp.running():
        yield
