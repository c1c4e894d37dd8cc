"""No query parameter is ignored: one that an endpoint does not have is refused, on every route of the app."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from fastapi import FastAPI
from starlette.routing import BaseRoute

from producers.http.app import create_app
from producers.http.known_parameters import known_of
from tests.doors.http_door import Door, http_door, refusal

UNKNOWN = "tyeps"


def routes(app: FastAPI) -> Iterator[BaseRoute]:
    """Every route, those of routers that the app includes too."""
    for route in app.router.routes:
        contexts = getattr(route, "effective_route_contexts", None)
        yield from (context.original_route for context in contexts()) if contexts else (route,)


ROUTES = [
    (method, route.path)  # type: ignore[attr-defined]
    for route in routes(create_app(None))  # type: ignore[arg-type]
    for method in sorted(getattr(route, "methods", None) or {"POST"})
    if method != "HEAD"
]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def test_the_routes_are_those_of_the_whole_app() -> None:
    paths = {path.replace(":path}", "}") for _, path in ROUTES}
    described = create_app(None).openapi()["paths"]  # type: ignore[arg-type]
    assert paths >= {*described, "/", "/docs", "/openapi.json", "/mcp", "/metrics", "/health"}


async def test_a_parameter_that_a_route_does_not_have_is_refused_whatever_else_is_right_or_wrong(door: Door) -> None:
    head = await door.head()
    for method, path in ROUTES:
        filled = re.sub(r"\{[^}]*\}", "x", path)
        answer = await door.request(method, filled, params={UNKNOWN: "tool"}, json={} if method != "GET" else None)
        assert UNKNOWN in refusal(answer, 422, "invalid_payload"), (method, path)
        assert answer.json()["error"]["details"]["errors"] == [{"field": UNKNOWN, "reason": "is not a parameter here"}]
    assert await door.head() == head


async def test_every_parameter_that_a_route_is_described_with_is_known_to_it(door: Door) -> None:
    app = create_app(door.desk)
    described = app.openapi()["paths"]
    for route in routes(app):
        for method in set(getattr(route, "methods", None) or ()) - {"HEAD"}:
            operation = described.get(getattr(route, "path", "").replace(":path}", "}"), {}).get(method.lower())
            if operation is not None:
                named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
                assert named == known_of(route), (method, route)  # type: ignore[arg-type]


async def test_a_refusal_tells_what_the_endpoint_has(door: Door) -> None:
    told = refusal(await door.get("/api/knowledge/search", params={"q": "x", "topk": "3"}), 422, "invalid_payload")
    assert "'topk'" in told
    assert "top_k" in told
    assert "it has none" in refusal(await door.post("/mcp", params={"a": "1"}, json={}), 422, "invalid_payload")
