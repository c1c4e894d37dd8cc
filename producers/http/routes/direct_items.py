"""Saving an item, reading one and the newest of all, without the framework around them: what an agent does often.

As in direct.py: what the framework does for these routes is known beforehand, and costs more than what they do
themselves. A request that does not fit goes through the framework, which alone says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kledger.contract.errors import LedgerError
from kledger.requests.knowledge import SaveRequest
from producers.http import errors
from producers.http.bodies import JsonRequest, remembered
from producers.http.identity import caller_of, lineage_of, retry_of
from producers.http.known_parameters import known_of, refuse_others
from producers.http.parameters import PageQuery, ReadQuery, decoded_id, seen_of
from producers.http.routes.direct import route_of
from projections.views.knowledge.listing import Wanted

SAVE = "/api/knowledge"
ITEM = "/api/knowledge/{item_id}"
_BEFORE_ID = ITEM.partition("{")[0]
_NO_FILTERS = Wanted()
_OF_A_PAGE = PageQuery.model_fields.keys()


class DirectItems:
    """The three routes, found among the routes of the app; a list with filters goes through the framework."""

    def __init__(self, app: FastAPI, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._save = route_of(routes, "POST", SAVE)
        self._list = route_of(routes, "GET", SAVE)
        self._item = route_of(routes, "GET", ITEM)
        self._known = {route.path: known_of(route) for route in (self._save, self._item) if route is not None}
        self._others = {route.path for route in routes if isinstance(route, APIRoute) and "{" not in route.path}

    def takes(self, scope: Scope) -> bool:
        """Whether a request saves an item, reads one or lists them."""
        path, method = scope["path"], scope["method"]
        if path == SAVE:
            return (method == "POST" and self._save is not None) or (method == "GET" and self._list is not None)
        if method != "GET" or self._item is None or not path.startswith(_BEFORE_ID) or path in self._others:
            return False
        return len(path) > len(_BEFORE_ID) and "/" not in path[len(_BEFORE_ID) :]

    async def answer(self, scope: Scope, receive: Receive, otherwise: ASGIApp) -> ASGIApp:
        """The answer; `otherwise` where the framework has to say what is wrong with the request. Raises LedgerError."""
        if scope["path"] != SAVE:
            route, work = self._item, self._read
        elif scope["method"] == "POST":
            route, work = self._save, self._saved
        else:
            route, work = self._list, self._listed
        assert route is not None  # it takes the request
        scope["app"], scope["route"] = self._app, route
        return await work(JsonRequest(scope, receive), route, otherwise)

    async def _saved(self, request: JsonRequest, route: APIRoute, otherwise: ASGIApp) -> ASGIApp:
        body = await request.body()
        if not body:
            return partial(_again, otherwise, body)
        document = await request.json()

        async def work() -> Response | None:
            self._refuse_others(request, route)
            caller, lineage = await caller_of(request), await lineage_of(request)
            retry = await retry_of(request)
            try:
                payload = SaveRequest.model_validate(document)
            except ValidationError:
                return None
            answer: Response = await route.endpoint(caller, lineage, retry, payload)
            return answer

        return await remembered(request, work) or partial(_again, otherwise, body)

    async def _read(self, request: JsonRequest, route: APIRoute, otherwise: ASGIApp) -> ASGIApp:
        self._refuse_others(request, route)
        caller = await caller_of(request)
        item_id = decoded_id(request.scope["path"][len(_BEFORE_ID) :])
        own = await seen_of(request, caller)
        try:
            asked = ReadQuery.model_validate(dict(request.query_params))
        except ValidationError:
            return otherwise
        try:
            answer: Response = await route.endpoint(caller, item_id, own, asked)
        except LedgerError as error:
            return errors.of_route(request, error)
        return answer

    async def _listed(self, request: JsonRequest, route: APIRoute, otherwise: ASGIApp) -> ASGIApp:
        given = request.query_params.multi_items()
        if len(given) != len(dict(given)) or not dict(given).keys() <= _OF_A_PAGE:
            return otherwise
        caller = await caller_of(request)
        own = await seen_of(request, caller)
        try:
            asked = PageQuery.model_validate(dict(given))
        except ValidationError:
            return otherwise
        page = (asked.limit, asked.offset, asked.before)
        try:
            answer: Response = await route.endpoint(caller, asked.freshness(own), None, _NO_FILTERS, *page)
        except LedgerError as error:
            return errors.of_route(request, error)
        return answer

    def _refuse_others(self, request: Request, route: APIRoute) -> None:
        if request.scope["query_string"]:
            refuse_others(request, self._known[route.path])


async def _again(app: ASGIApp, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
    """Ask the app with a body that was read already."""
    read = False

    async def take() -> Message:
        nonlocal read
        if read:
            return await receive()
        read = True
        return {"type": "http.request", "body": body, "more_body": False}

    await app(scope, take, send)
