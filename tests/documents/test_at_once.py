"""Documents that are ingested and removed at once, and whose chunks their owner changes meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.doors.at_once import Request, at_every_moment, refused_since, rows
from tests.doors.http_door import ALICE, Door, http_door

ORPHANS = """
    SELECT k.id FROM knowledge k WHERE k.status = 'active' AND contains(k.content, ?)
        AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.status = 'active' AND list_contains(d.chunks, k.id))"""
MISSING = """
    SELECT chunk FROM (SELECT unnest(chunks) AS chunk FROM documents WHERE id = ? AND status = 'active')
    WHERE chunk NOT IN (SELECT id FROM knowledge)"""


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def text(name: str, version: int) -> str:
    """What the document says: one section that stays, and one of this version."""
    return f"# Rules\n\nThe rules of {name}, stay.\n\n# News\n\nThe news of {name}, number {version}.\n"


class Doing:
    """What can be done to a document and its chunks, each about the document of a name."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._chunks: dict[str, list[str]] = {}

    async def nothing(self, name: str) -> None:
        """It is not there yet."""

    async def begun(self, name: str) -> None:
        answer = await self.ingested(1)(name)
        assert answer.status_code == 201, answer.text
        document = (await self._door.get(f"/api/documents/{name}", headers=ALICE)).json()
        self._chunks[name] = [each["id"] for each in document["chunks"]]

    def ingested(self, version: int, key: str = "", **more: Any) -> Request:
        async def request(name: str) -> httpx.Response:
            headers = {**ALICE, "Idempotency-Key": f"{key}-{name}"} if key else ALICE
            body = {"id": name, "text": text(name, version), **more}
            return await self._door.post("/api/documents", json=body, headers=headers)

        return request

    def removed(self, key: str = "") -> Request:
        async def request(name: str) -> httpx.Response:
            headers = {**ALICE, "Idempotency-Key": f"{key}-{name}"} if key else ALICE
            return await self._door.delete(f"/api/documents/{name}", headers=headers)

        return request

    def chunk(self, number: int, **changed: Any) -> Request:
        """One chunk is retired, or stated anew."""

        async def request(name: str) -> httpx.Response:
            path = f"/api/knowledge/{self._chunks[name][number]}"
            if not changed:
                return await self._door.delete(path, headers=ALICE)
            return await self._door.put(path, json=changed, headers=ALICE)

        return request

    async def scopes(self, name: str, number: int) -> list[str]:
        (row,) = await rows(self._door, "SELECT scopes FROM knowledge WHERE id = ?", self._chunks[name][number])
        return list(row[0])


@pytest.fixture
def doing(door: Door) -> Doing:
    return Doing(door)


GIVEN = {"owner": "user:bob", "scopes": ["user:bob"]}
PAIRS = {
    "two new ones": lambda do: (do.nothing, do.ingested(1), do.ingested(2)),
    "a new one, sent twice": lambda do: (do.nothing, do.ingested(1, "key"), do.ingested(1, "key")),
    "two versions": lambda do: (do.begun, do.ingested(2), do.ingested(3)),
    "a version, sent twice": lambda do: (do.begun, do.ingested(2, "key"), do.ingested(2, "key")),
    "a version, and the end": lambda do: (do.begun, do.ingested(2), do.removed()),
    "the end, and a version": lambda do: (do.begun, do.removed(), do.ingested(2)),
    "two ends": lambda do: (do.begun, do.removed(), do.removed()),
    "the end, sent twice": lambda do: (do.begun, do.removed("key"), do.removed("key")),
    "a version, and a chunk retired": lambda do: (do.begun, do.ingested(2), do.chunk(1)),
    "a version, and a chunk given away": lambda do: (do.begun, do.ingested(2), do.chunk(1, **GIVEN)),
    "the end, and a chunk retired": lambda do: (do.begun, do.removed(), do.chunk(1)),
    "the end, and a chunk given away": lambda do: (do.begun, do.removed(), do.chunk(1, **GIVEN)),
}


@pytest.mark.parametrize("pair", PAIRS)
async def test_whatever_comes_between_no_chunk_is_without_its_document_and_no_event_in_vain(
    door: Door, doing: Doing, pair: str
) -> None:
    begin, request, rival = PAIRS[pair](doing)
    async for met in at_every_moment(door, begin, request, rival):
        about = (met.name, met.told.text, met.rival.text)
        assert await refused_since(door, met.before) == [], about
        if "given away" not in pair:
            assert await rows(door, ORPHANS, f" of {met.name},") == [], about
        assert await rows(door, MISSING, met.name) == [], about
        if "sent twice" in pair:
            assert met.told.json()["event_id"] == met.rival.json()["event_id"], about


async def test_a_chunk_that_its_owner_closes_meanwhile_is_not_opened_again_with_its_document(
    door: Door, doing: Doing
) -> None:
    opened, closed = doing.ingested(1, scopes=["public"]), doing.chunk(0, scopes=["user:carol"])
    async for met in at_every_moment(door, doing.begun, opened, closed):
        assert (met.told.status_code, met.rival.status_code) == (201, 200), met
        assert await doing.scopes(met.name, 0) == ["user:carol"], met.name
        assert await doing.scopes(met.name, 1) == ["public"], met.name
