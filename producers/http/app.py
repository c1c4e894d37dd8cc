"""How is the HTTP door put together? Routes, errors, metrics and the guard around them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI

from producers.access.book import NO_TOKENS, TokenBook
from producers.access.limits import Limits, limits_from_environment
from producers.http import errors, metrics, pages
from producers.http.admission import Admission
from producers.http.guard import Guard
from producers.http.identity import FURTHER, IDEMPOTENCY_KEY, IDENTITIES, LINEAGE, SEEN
from producers.http.known_parameters import refuse_unknown
from producers.http.repeated import Repeated
from producers.http.routes import (
    admin,
    evolutions,
    extractions,
    knowledge,
    profiles,
    recall,
    refused,
    resources,
    scope_types,
    slims,
)
from producers.mcp.at_node import McpAtNode
from producers.operations.desk import Desk
from producers.operations.own_writes import NOTHING, OwnWrites

DESCRIPTION = (
    "Every write is an immutable event and answers with its log position. Reads see what their caller wrote; with "
    "`min_position` they see what others did. What an answer lacks is in its `degraded`. "
    "Who asks says so in the X-Ledger headers (percent-encoded); with none it is the operator of the node. "
    "A node with tokens asks for `Authorization: Bearer` everywhere but at /health; the headers then choose among "
    "what the token is bound to. "
    "Errors are `{error: {code, message, details}}` with stable codes."
)


def create_app(
    desk: Desk, *, on_loopback: bool = True, tokens: TokenBook = NO_TOKENS, limits: Limits | None = None
) -> FastAPI:
    """The app of one node. `on_loopback`: without tokens, it is asked under a name of its own machine alone."""
    app = FastAPI(
        title="Knowledge Ledger",
        version=version("knowledge-ledger"),
        description=DESCRIPTION,
        # The framework's pages load scripts from elsewhere; `pages` renders one that does not.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,  # served by `pages` too, as every route is
        redirect_slashes=False,
        dependencies=[Depends(refuse_unknown)],
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
    for router in (
        *slims.routes(desk),
        *knowledge.routes(desk),
        *evolutions.routes(desk),
        *extractions.routes(desk),
        *profiles.routes(desk),
        *resources.routes(desk),
        *scope_types.routes(desk),
        *recall.routes(desk),
        *admin.routes(desk),
        *refused.routes(desk),
        metrics.routes(desk, counted),
        pages.routes(app, mcp.path),
    ):
        app.include_router(router)
    app.router.routes.append(mcp.route)
    errors.install(app)
    admission = Admission(tokens, limits, counted, on_loopback)
    app.add_middleware(Guard, metrics=counted, admission=admission)
    _describe_headers(app)
    return app


@asynccontextmanager
async def _serving_tools(app: FastAPI) -> AsyncIterator[None]:
    """MCP is answered while the app runs."""
    async with app.state.mcp.running():
        yield


def _describe_headers(app: FastAPI) -> None:
    """Tell in the OpenAPI document of the headers that every route under /api takes."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        known = app.openapi_schema is not None
        document = generated()
        if known:
            return document
        for path, operations in document["paths"].items():
            if not path.startswith("/api/"):
                continue
            for method, operation in operations.items():
                names = [*IDENTITIES, FURTHER, *LINEAGE, "traceparent"]
                names += [IDEMPOTENCY_KEY] if method != "get" else [SEEN]
                operation.setdefault("parameters", []).extend(
                    {"name": name, "in": "header", "required": False, "schema": {"type": "string"}} for name in names
                )
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI documents this way to extend the schema
