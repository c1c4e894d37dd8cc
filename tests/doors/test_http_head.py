"""HEAD is answered as GET is, on every route, without the body."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.access.wire import heard
from tests.doors.http_door import ALICE, Door, http_door, refusal
from tests.doors.one_app import app_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
OF_A_MOMENT = {"date", "content-length"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    async with http_door() as door:
        yield door


async def read(door: Door) -> list[str]:
    """Every path of the description that is read, with an item of Alice's where it takes one."""
    saved = await door.saved(scopes=["public"])
    paths = (await door.get("/openapi.json")).json()["paths"]
    reads = [path for path, item in paths.items() if "get" in item]
    return [path.replace("{item_id}", saved["id"]).replace("{", "").replace("}", "") for path in reads]


async def test_every_route_that_is_read_answers_head_with_the_status_and_the_headers_of_get(door: Door) -> None:
    for path in [*await read(door), "/docs", "/openapi.json", "/", "/nothing", "/ui", "/ui/sign-in"]:
        got = await door.get(path, headers=ALICE)
        asked = await door.request("HEAD", path, headers=ALICE)
        assert asked.status_code == got.status_code != 405, path
        assert asked.content == b"", path
        assert {*asked.headers} - OF_A_MOMENT == {*got.headers} - OF_A_MOMENT, path


async def test_what_a_path_takes_is_told_whole_and_with_head(door: Door) -> None:
    refused = await door.patch("/api/knowledge", json={}, headers=ALICE)
    refusal(refused, 405, "method_not_allowed")
    assert refused.headers["Allow"] == "GET, HEAD, POST"
    written = await door.request("HEAD", "/api/memory/held/any/release", headers=ALICE)
    assert (written.status_code, written.headers["Allow"]) == (405, "POST")


async def test_an_answer_to_head_has_its_length_and_no_body_on_the_wire(door: Door) -> None:
    wire = await heard(app_of(door.desk), b"HEAD /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    head, _, body = b"".join(wire.pieces).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]) > 0
    assert body == b""
