"""The route that is asked most, called without the framework around it.

A search of the vector process takes a millisecond; the framework's layers between the guard and the route, which solve
dependencies that are known beforehand, took about as long. Whatever is not plain (a parameter that does not fit) goes
through the framework as before, so that there is one place that says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope

from producers.http.filters import SearchAmong
from producers.http.identity import caller_of, lineage_of
from producers.http.known_parameters import known_of, refuse_others
from producers.http.parameters import seen_of

PATH = "/api/knowledge/search"


class Direct(Protocol):
    """Routes that are called without the framework."""

    def takes(self, scope: Scope) -> bool:
        """Whether a request is one of these."""

    async def answer(self, scope: Scope, receive: Receive, otherwise: ASGIApp) -> ASGIApp:
        """What answers it; `otherwise` where the framework has to. Raises LedgerError."""


def route_of(routes: Sequence[BaseRoute], method: str, path: str) -> APIRoute | None:
    """The route of the app for this method and path; an app that only describes itself has none."""
    for route in routes:
        if isinstance(route, APIRoute) and route.path == path and method in (route.methods or ()):
            return route
    return None


class DirectSearch:
    """The route of a search, found among the routes of the app."""

    def __init__(self, app: FastAPI, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._route = route_of(routes, "GET", PATH)
        self._known = frozenset() if self._route is None else known_of(self._route)

    def takes(self, scope: Scope) -> bool:
        """Whether a request is a search."""
        return self._route is not None and scope["path"] == PATH and scope["method"] == "GET"

    async def answer(self, scope: Scope, receive: Receive, otherwise: ASGIApp) -> ASGIApp:
        """The answer to a search; `otherwise` where the framework has to say what is wrong with it. Raises LedgerError.

        What is refused first is what the framework refuses first: dependencies in their order, then the parameters.
        """
        assert self._route is not None  # it takes the request
        scope["app"], scope["route"] = self._app, self._route
        request = Request(scope, receive)
        if scope["query_string"]:
            refuse_others(request, self._known)
        caller = await caller_of(request)
        lineage = await lineage_of(request)
        own = await seen_of(request, caller)
        try:
            asked = SearchAmong.model_validate(dict(request.query_params))
        except ValidationError:
            return otherwise
        answer: Response = await self._route.endpoint(caller, lineage, own, asked)
        return answer
