"""However deep a body is nested, every endpoint answers with a code of its own, and nothing is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.doors.http_door import Door, http_door

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def takers(described: dict[str, Any]) -> list[tuple[str, str, list[str]]]:
    """Every endpoint that takes a body, with the fields that a body may have."""
    found = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                named = schema.get("$ref", "").rpartition("/")[2]
                known = described["components"]["schemas"].get(named, schema)
                found.append(
                    (method.upper(), path.replace("{", "").replace("}", ""), list(known.get("properties", {})))
                )
    return found


@pytest.mark.parametrize("depth", [33, 150, 197, 199, 200, 251, 253, 254, 255, 600, 1_000, 1_030, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")], ids=["objects", "lists"])
async def test_however_deep_a_body_is_nested_it_is_refused_with_a_code(
    door: Door, depth: int, opening: str, closing: str
) -> None:
    before = await door.head()
    nested = opening * depth + "1" + closing * depth
    asked = takers((await door.get("/openapi.json")).json())
    assert len(asked) > 15
    for method, path, fields in asked:
        for field in [*fields, "unknown"]:
            body = f'{{"{field}":{nested}}}'
            for headers in ({}, {"Idempotency-Key": f"{depth}{opening[0]}{method}{path}{field}"}):
                answer = await door.request(
                    method,
                    path,
                    content=body,
                    headers={"Content-Type": "application/json", "X-Ledger-User": "ada", **headers},
                )
                assert 400 <= answer.status_code < 500, (method, path, field, answer.text[:300])
                assert answer.json()["error"]["code"] != "internal_error"
    assert await door.head() == before
