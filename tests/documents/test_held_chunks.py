"""A held chunk is released for as long as its document says it, to the readers that the document has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.doors.http_door import ALICE, Door, http_door, refusal

RUNS = "The nightly build runs on Fridays at noon."
WEB = {**ALICE, "X-Ledger-Team": "web"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def ingested(door: Door, text: str = RUNS, **said: Any) -> None:
    answer = await door.post("/api/documents", json={"id": "rules.md", "text": text, **said}, headers=WEB)
    assert answer.status_code == 201, answer.text
    await door.desk.view.wait_for(await door.head())


async def held(door: Door, **said: Any) -> str:
    """The id of a held chunk of a document."""
    item = await door.saved(WEB, content=RUNS, scopes=["user:alice", "team:web"])
    gone = await door.delete(f"/api/knowledge/{item['id']}?reason=wrong", headers=WEB)
    await door.desk.view.wait_for(gone.json()["position"])
    await ingested(door, scopes=["team:web"], **said)
    (kept,) = (await door.get("/api/memory/held", headers=WEB)).json()["results"]
    found: str = kept["id"]
    return found


async def release(door: Door, held_id: str) -> httpx.Response:
    return await door.post(f"/api/memory/held/{held_id}/release", json={}, headers=WEB)


async def test_a_held_chunk_that_its_document_says_is_released_to_the_documents_readers(door: Door) -> None:
    held_id = await held(door)
    answer = await release(door, held_id)
    assert answer.is_success, answer.text
    await door.desk.view.wait_for(await door.head())
    item = (await door.get(f"/api/knowledge/{answer.json()['knowledge_id']}", headers=WEB)).json()
    assert (item["content"], item["scopes"], item["part"]["document"]) == (RUNS, ["team:web"], "rules.md")


@pytest.mark.parametrize("since", ["removed", "other scopes", "another text"])
async def test_a_held_chunk_is_not_released_after_its_document_changed(door: Door, since: str) -> None:
    held_id = await held(door)
    if since == "removed":
        assert (await door.delete("/api/documents/rules.md", headers=WEB)).status_code == 200
    elif since == "other scopes":
        await ingested(door, scopes=["user:alice"])
    else:
        await ingested(door, "Another text.")
    head = await door.head()
    said = refusal(await release(door, held_id), 409, "illegal_state")
    assert "other scopes" in said if since == "other scopes" else "no document of user:alice" in said
    assert await door.head() == head
    dropped = await door.post(f"/api/memory/held/{held_id}/drop", json={}, headers=WEB)
    assert dropped.is_success, dropped.text


async def test_an_imported_item_of_that_type_is_released_without_a_document(door: Door) -> None:
    item = await door.saved(content=RUNS)
    gone = await door.delete(f"/api/knowledge/{item['id']}?reason=wrong", headers=ALICE)
    await door.desk.view.wait_for(gone.json()["position"])
    items = [{"task": "builds", "content": RUNS, "types": ["document"]}]
    many = await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)
    assert many.json()["held"] == 1, many.text
    assert (await release(door, many.json()["results"][0]["held"]["id"])).is_success
