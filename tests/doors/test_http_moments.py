"""A moment is read by one rule, RFC 3339 in capitals or not, wherever one is stated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kledger.contract.errors import InvalidPayload
from producers.access.tokens import expiry
from tests.doors.http_door import ALICE, Door, http_door, refusal

TAKEN = {
    "2026-01-02T03:04:05Z": "2026-01-02T03:04:05+00:00",
    "2026-01-02t03:04:05z": "2026-01-02T03:04:05+00:00",
    "2026-01-02T03:04:05z": "2026-01-02T03:04:05+00:00",
    "2026-01-02T05:04:05.123456789+02:00": "2026-01-02T03:04:05.123456+00:00",
    "2026-01-02T02:34:05-00:30": "2026-01-02T03:04:05+00:00",
    "1969-12-31T23:59:59.5Z": "1969-12-31T23:59:59.500000+00:00",
    "0001-01-01T00:00:00Z": "0001-01-01T00:00:00+00:00",
}
REFUSED = [
    *("2026-01-02", "2026-01-02T03:04:05", "2026-01-02T03:04Z", "2026-01-02T03Z", "20260102T030405Z"),
    *("2026-W01-5T03:04:05Z", "2026-001T03:04:05Z", "2026-01-02T03:04:05,5Z", "2026-01-02T03:04:05+0200"),
    "2026-01-02T03:04:05.1234567890Z",
    *("2026-06-30T23:59:60Z", "2026-01-02T24:00:00Z", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z"),
    *("12026-01-02T03:04:05Z", "-2026-01-02T03:04:05Z"),
    *("yesterday", "٢٠٢٦-01-02T03:04:05Z", "2026-01-02T03:04:05+24:00", "2026-01-02T03:04:05Z[UTC]"),
]  # fmt: skip
NO_MOMENTS = [
    *("2026-13-01", "2026-02-30", "0000-01-01", "2026-13-01T00:00", "2026-02-29T00:00:00", "2026-01-02T25:00:00"),
    *("2026-13-01T00:00:00Z", "2026-06-30T23:59:60Z", "2026-01-02T03:60:05+01:00", "2026-01-02T03:04:05+25:00"),
]
"""Of the form of a moment, with an offset or without one, and none of the calendar."""
EDGES = ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"]
"""Beyond the calendar in UTC: bounds of a question, and times of nothing that is stated."""
QUERIES = [
    *(("/api/knowledge", "as_of"), ("/api/knowledge", "since"), ("/api/knowledge", "until")),
    *(("/api/knowledge/k", "as_of"), ("/api/memory", "since"), ("/api/memory", "until"), ("/api/memory", "as_of")),
    *(("/api/knowledge/search?q=a", "as_of"), ("/api/overview/facets", "since")),
]
"""Where a query names a moment; each address has an item or answers without one."""


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(id="k")
        yield opened


async def asked(door: Door, path: str, name: str, moment: str) -> Any:
    more = dict(part.split("=") for part in path.partition("?")[2].split("&") if part)
    return await door.get(path.partition("?")[0], params={**more, name: moment}, headers=ALICE)


async def test_what_is_no_moment_of_the_calendar_is_told_so_before_its_offset_is_asked_for(door: Door) -> None:
    for path, name in QUERIES:
        for moment in NO_MOMENTS:
            answer = await asked(door, path, name, moment)
            assert "is no moment of the calendar" in refusal(answer, 422, "invalid_payload"), (path, name, moment)
        answer = await asked(door, path, name, "2026-02-28")
        assert "does not say its offset" in refusal(answer, 422, "invalid_payload"), (path, name)


async def test_every_query_takes_the_same_moments_and_refuses_the_same(door: Door) -> None:
    for path, name in QUERIES:
        for moment in (*TAKEN, *(EDGES if name != "as_of" else EDGES[:1])):  # the last one is yet to come
            answer = await asked(door, path, name, moment)
            assert answer.status_code in (200, 404), (path, name, moment, answer.text)
        for moment in REFUSED:
            answer = await asked(door, path, name, moment)
            assert name in refusal(answer, 422, "invalid_payload"), (path, moment)


async def test_a_recall_and_what_it_remembers_go_by_the_same_rule(door: Door) -> None:
    def episode(moment: str) -> dict[str, Any]:
        return {"layer": "episodic", "content": f"at {moment}", "happened_at": moment}

    for moment in TAKEN:
        answer = await door.post("/api/memory/recall", json={"message": "a", "as_of": moment}, headers=ALICE)
        assert answer.status_code == 200, answer.text
        answer = await door.post("/api/memory", json=episode(moment), headers=ALICE)
        assert answer.status_code == 201, answer.text
        await door.desk.view.wait_for(answer.json()["position"])
        item = (await door.get(f"/api/knowledge/{answer.json()['id']}", headers=ALICE)).json()
        kept = item["memory"]["happened_at"]
        assert kept == moment.upper()
    for moment in REFUSED:
        asked = {"message": "a", "as_of": moment}
        refusal(await door.post("/api/memory/recall", json=asked, headers=ALICE), 422, "invalid_payload")
    for moment in (*REFUSED, *EDGES):
        refusal(await door.post("/api/memory", json=episode(moment), headers=ALICE), 422, "invalid_payload")
        resource = {"id": "a/b", "title": "t", "metadata": {"expires_at": moment}}
        refusal(await door.post("/api/resource", json=resource, headers=ALICE), 422, "invalid_payload")


def test_the_end_of_a_token_goes_by_the_same_rule() -> None:
    before = datetime(1, 1, 1, tzinfo=UTC).replace(microsecond=0)
    for moment, meant in TAKEN.items():
        if not meant.startswith("0001"):
            ends = expiry(moment, before)
            assert ends is not None
            assert ends.isoformat() == meant
    for moment in (*REFUSED, *EDGES):
        with pytest.raises(InvalidPayload):
            expiry(moment, before)
