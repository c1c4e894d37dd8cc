"""Routers of the HTTP interface: what every route of it has."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from producers.http.answers import REFUSED
from producers.http.bodies import JsonRoute
from producers.http.known_parameters import refuse_unknown

_WAIT = {"Retry-After": {"description": "Seconds to wait", "schema": {"type": "integer", "minimum": 1}}}
_CHALLENGE = {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}}
_REFUSED = {"content": REFUSED}
BEFORE_A_ROUTE: dict[int | str, dict[str, Any]] = {
    401: {
        "description": "The token is missing, unknown, expired or revoked",
        "headers": _CHALLENGE,
        "content": REFUSED,
    },
    403: {"description": "Not the caller's to ask"} | _REFUSED,
    422: {"description": "The request does not fit, or names a parameter that is not there"} | _REFUSED,
    429: {"description": "Too many requests at once", "headers": _WAIT} | _REFUSED,
}
"""Errors with which a request may end before its route is asked."""


def router(tag: str, prefix: str = "", route_class: type[APIRoute] = JsonRoute) -> APIRouter:
    """A router whose routes are whole: the app takes them as they are.

    What an app adds to the routers that it includes, FastAPI builds every route for a second time.
    """
    return APIRouter(
        route_class=route_class,
        tags=[tag],
        prefix=prefix,
        dependencies=[Depends(refuse_unknown)],
        responses=BEFORE_A_ROUTE,
    )
