"""No query parameter is ignored: one that an endpoint does not have is refused, on every route of the app."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute

from kledger.contract.bounds import MOST_LISTED
from producers.http.app import create_app
from producers.http.known_parameters import known_of
from producers.http.parameters import MOST_WORDS
from tests.doors.http_door import ALICE, Door, http_door, refusal
from tests.doors.one_app import app_of

UNKNOWN = "tyeps"


def routes(app: FastAPI) -> Iterator[BaseRoute]:
    """Every route, those of routers that the app includes too."""
    for route in app.router.routes:
        contexts = getattr(route, "effective_route_contexts", None)
        yield from (context.original_route for context in contexts()) if contexts else (route,)


ROUTES = [
    (method, route.path)  # type: ignore[attr-defined]
    for route in routes(app_of(None))  # type: ignore[arg-type]
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


async def test_a_parameter_that_is_stated_twice_is_refused_on_every_route(door: Door) -> None:
    """The last one was taken: `types=tool&types=plan` answered with plans alone, as if nothing else had been asked."""
    stated = 0
    for route in [route for route in routes(create_app(door.desk)) if isinstance(route, APIRoute)]:
        for name in sorted(known_of(route)):
            method, filled = sorted(route.methods or ())[0], re.sub(r"\{[^}]*\}", "x", route.path)
            answer = await door.request(method, filled, params=[(name, "1"), (name, "2")])
            assert f"'{name}'" in refusal(answer, 422, "invalid_payload"), (method, filled)
            assert answer.json()["error"]["details"]["errors"] == [
                {"field": name, "reason": "is stated more than once"}
            ]
            stated += 1
    assert stated > 50


async def test_a_filter_has_a_bound_of_words_on_every_route(door: Door) -> None:
    """Each word is looked for in every item: a few requests with thousands kept everybody else's reads waiting."""
    bounded = []
    for path, operations in create_app(door.desk).openapi()["paths"].items():
        for parameter in operations.get("get", {}).get("parameters", ()):
            if parameter["in"] == "query" and "separated by commas" in parameter.get("description", ""):
                name, filled = parameter["name"], re.sub(r"{[^}]*}", "x", path)
                many = ",".join(f"user:w{n}" if name == "scopes" else f"w{n}" for n in range(MOST_LISTED + 1))
                answer = await door.get(filled, params={name: many, **({"q": "x"} if "search" in path else {})})
                assert "1,001 words" in refusal(answer, 422, "invalid_payload"), (filled, name, answer.text)
                assert [each["field"] for each in answer.json()["error"]["details"]["errors"]] == [name]
                bounded.append(name)
    assert {"types", "scopes", "tags", "layer", "visibility", "change", "id", "kind"} <= set(bounded)
    fits = await door.get("/api/knowledge", params={"tags": ",".join(f"w{n}" for n in range(MOST_WORDS))})
    assert fits.status_code == 200


async def test_every_parameter_that_a_route_is_described_with_is_known_to_it(door: Door) -> None:
    app = create_app(door.desk)
    described = app.openapi()["paths"]
    for route in routes(app):
        for method in set(getattr(route, "methods", None) or ()) - {"HEAD"}:
            operation = described.get(getattr(route, "path", "").replace(":path}", "}"), {}).get(method.lower())
            if operation is not None:
                named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
                assert named == known_of(route), (method, route)  # type: ignore[arg-type]


def test_a_text_that_is_written_is_bounded_where_a_route_takes_it() -> None:
    """Else what is too long for the event is refused by the event's class, which is an error of the node."""

    def is_free(schema: dict[str, Any]) -> bool:
        if "anyOf" in schema:
            return any(map(is_free, schema["anyOf"])) and "maxLength" not in schema
        return schema.get("type") == "string" and not schema.keys() & {"maxLength", "enum", "const", "pattern"}

    described = create_app(None).openapi()["paths"]  # type: ignore[arg-type]
    free = {
        (method, path, one["name"])
        for path, operations in described.items()
        for method, operation in operations.items()
        for one in operation.get("parameters", ())
        if method != "get" and one["in"] == "query" and is_free(one["schema"])
    }
    assert {name for _, _, name in free} == {"owner"}, free  # which is compared, and written nowhere


async def test_a_refusal_tells_what_the_endpoint_has(door: Door) -> None:
    told = refusal(await door.get("/api/knowledge/search", params={"q": "x", "topk": "3"}), 422, "invalid_payload")
    assert "'topk'" in told
    assert "top_k" in told
    assert "it has none" in refusal(await door.post("/mcp", params={"a": "1"}, json={}), 422, "invalid_payload")


BODILESS = [
    (route, method)
    for route in routes(app_of(None))  # type: ignore[arg-type]
    if isinstance(route, APIRoute) and route.body_field is None
    for method in sorted((route.methods or set()) - {"GET", "HEAD"})
]


async def test_what_is_said_in_a_body_that_an_endpoint_does_not_take_is_refused_and_nothing_is_done(door: Door) -> None:
    await door.saved(id="x")
    head = await door.head()
    for route, method in BODILESS:
        filled = re.sub(r"\{[^}]*\}", "x", route.path)
        for body in ({"reason": "wrong"}, ["wrong"], "wrong"):
            answer = await door.request(method, filled, json=body, headers=ALICE)
            told = refusal(answer, 422, "invalid_payload")
            assert told.startswith(f"{method} {filled} takes no body"), (route, told)
            if isinstance(body, dict) and "reason" in known_of(route):
                assert told.endswith("give reason as a parameter of the address")
    assert await door.head() == head
    assert ("/api/knowledge/{item_id}", "DELETE") in [(route.path, method) for route, method in BODILESS]


@pytest.mark.parametrize("body", [b"", b"{}", b"null"])
async def test_a_body_that_says_nothing_is_as_none(door: Door, body: bytes) -> None:
    await door.saved(id="x")
    stated = ALICE | {"Content-Type": "application/json"}
    answer = await door.request("DELETE", "/api/knowledge/x", content=body, headers=stated)
    assert answer.status_code == 200, answer.text
