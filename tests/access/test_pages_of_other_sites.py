"""What a browser asks for a page of another site is refused before anything is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.doors.http_door import Door, http_door, refusal

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
NAVIGATION = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-User": "?1"}
PAGES = ("/", "/docs")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    async with http_door() as door:
        yield door


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def paths_of(door: Door) -> list[str]:
    """Every path of the node: those of its description, and those that are not described."""
    described = (await door.get("/openapi.json")).json()["paths"]
    return [*described, *PAGES, "/openapi.json", "/mcp", "/nothing"]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "CROSS-SITE", "", "anything", "none, cross-site"])
@pytest.mark.parametrize(
    "kind",
    [
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"},
        {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {},
    ],
    ids=["image", "script", "fetch", "frame", "unsaid"],
)
async def test_no_path_answers_what_a_page_of_another_site_asks(door: Door, site: str, kind: dict[str, str]) -> None:
    before = await door.head()
    for path in await paths_of(door):
        for method in METHODS:
            answer = await door.request(method, path, headers={"Sec-Fetch-Site": site, **kind})
            if method == "HEAD":
                assert answer.status_code == 403, path
            else:
                assert "another site" in refusal(answer, 403, "not_owner")
    assert await door.head() == before
    assert door.desk.tally.searches == 0


async def test_an_image_that_searches_writes_no_recall(door: Door) -> None:
    saved = await door.saved(scopes=["public"])
    head = await door.head()
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    refusal(await door.get("/api/knowledge/search?q=content", headers=image), 403, "not_owner")
    refusal(await door.get(f"/api/knowledge/{saved['id']}", headers=image), 403, "not_owner")
    assert await door.head() == head


async def test_a_link_of_another_site_leads_to_pages_for_people_and_nowhere_else(door: Door) -> None:
    linked = {"Sec-Fetch-Site": "cross-site", **NAVIGATION}
    for path in await paths_of(door):
        answer = await door.get(path, headers=linked)
        if path in PAGES:
            assert answer.status_code == 200, path
        else:
            refusal(answer, 403, "not_owner")
        refusal(await door.post(path, headers=linked), 403, "not_owner")


@pytest.mark.parametrize("site", ["same-origin", "none"])
async def test_the_node_s_own_pages_and_what_is_typed_in_are_answered(door: Door, site: str) -> None:
    for path in ("/", "/docs", "/health", "/api/knowledge", "/openapi.json"):
        assert (await door.get(path, headers={"Sec-Fetch-Site": site, **NAVIGATION})).status_code == 200


async def test_two_words_about_the_site_are_refused_where_one_is_another_s(door: Door) -> None:
    twice = [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")]
    refusal(await door.client.get("/api/knowledge", headers=twice), 403, "not_owner")
