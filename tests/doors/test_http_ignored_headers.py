"""No header that says what is to be done is read over: one that is there twice, or is a condition, is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.doors.http_door import ALICE, Door, http_door, refusal


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "If-Unmodified-Since"])
async def test_a_change_on_a_condition_in_a_header_is_refused_and_not_done(door: Door, header: str) -> None:
    """It was done whatever the condition said, and whoever sent one lost what another had written."""
    await door.saved(id="x")
    head = await door.head()
    for method, path in (("PUT", "/api/knowledge/x"), ("DELETE", "/api/knowledge/x"), ("POST", "/api/knowledge")):
        body = {"content": "other"} if method == "PUT" else None
        answer = await door.request(method, path, json=body, headers=ALICE | {header: '"7"'})
        assert "expected_version" in refusal(answer, 422, "invalid_payload")
        assert answer.json()["error"]["details"]["errors"] == [{"field": header, "reason": "is not read here"}]
    assert await door.head() == head


async def test_a_read_on_a_condition_is_answered_whole(door: Door) -> None:
    await door.saved(id="x")
    answer = await door.get("/api/knowledge/x", headers=ALICE | {"If-None-Match": '"7"'})
    assert (answer.status_code, answer.json()["id"]) == (200, "x")


@pytest.mark.parametrize("header", ["Idempotency-Key", "X-Ledger-Trace-Id", "X-Ledger-Message-Id"])
async def test_a_header_that_is_there_twice_is_refused_and_nothing_is_kept(door: Door, header: str) -> None:
    head = await door.head()
    twice = [*ALICE.items(), (header, "one"), (header, "two")]
    body = {"task": "t", "content": "c", "types": ["tool"]}
    answer = await door.post("/api/knowledge", json=body, headers=twice)
    assert f"{header.lower()} is there twice" in refusal(answer, 422, "invalid_payload").lower()
    assert await door.head() == head
