"""A request names at most 256 entities: what is served to whom names them all, so their number has a bound."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kledger.contract.scopes import MOST_ENTITIES
from tests.doors.http_door import Door, http_door, refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "/api/knowledge/search?q=a", None),
    ("GET", "/api/knowledge", None),
    ("GET", "/api/recall/startup", None),
    ("GET", "/api/knowledge/anything", None),
    ("GET", "/api/resource", None),
    ("POST", "/api/knowledge", {"task": "t", "content": "c", "types": ["tool"]}),
    ("POST", "/api/goals/g/focus", {"description": "d"}),
    ("PUT", "/api/knowledge/anything", {"task": "t"}),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def named(count: int) -> dict[str, str]:
    """An identity of so many entities, `public` not among them."""
    further = ",".join(f"team:t{number}" for number in range(count - 1))
    return {"X-Ledger-User": "ada", "X-Ledger-Scope": further}


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
async def test_more_entities_than_the_bound_are_refused_and_nothing_is_kept(
    door: Door, method: str, path: str, body: Any
) -> None:
    before = await door.head()
    answer = await door.request(method, path, json=body, headers=named(MOST_ENTITIES + 1))
    assert f"more than {MOST_ENTITIES} entities" in refusal(answer, 422, "illegal_scope")
    assert await door.head() == before


async def test_as_many_as_the_bound_read_and_what_they_were_served_is_kept_with_all_of_them(door: Door) -> None:
    who = named(MOST_ENTITIES)
    told = (
        await door.post("/api/knowledge", json={"task": "t", "content": "violet", "types": ["tool"]}, headers=who)
    ).json()
    answer = await door.get("/api/knowledge/search?q=violet&min_score=0", headers=who)
    assert [item["id"] for item in answer.json()["results"]] == [told["id"]]
    await door.desk.view.wait_for(await door.head())
    query = "SELECT json_array_length(data->'$.visible_scopes') FROM events WHERE type = 'recall.served'"
    ((scopes,),) = await door.desk.view.ask(lambda con: con.execute(query).fetchall())
    assert scopes >= MOST_ENTITIES
