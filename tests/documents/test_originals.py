"""The original of a document: which resources keep it, and what becomes of others that a document names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.documents import original_id
from ledger.event import NewEvent
from ledger.events.document import DocumentIngested
from producers.operations.documents.original import PART
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

DOCUMENT = "minutes"
OPERATOR: dict[str, str] = {}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def resource(door: Door, who: dict[str, str], resource_id: str, **said: Any) -> None:
    body = {"id": resource_id, "title": "theirs", "body": "a body", **said}
    answer = await door.post("/api/resource", json=body, headers=who)
    assert answer.status_code == 201, answer.text
    await door.desk.view.wait_for(await door.head())


async def status(door: Door, who: dict[str, str], resource_id: str) -> str:
    await door.desk.view.wait_for(await door.head())
    answer = await door.get(f"/api/resource/{resource_id}", headers=who)
    assert answer.status_code == 200, answer.text
    said: str = answer.json()["status"]
    return said


async def published(door: Door, *resource_ids: str) -> None:
    """Bob's document as a publisher of his own states it."""
    forged = DocumentIngested(
        title="Minutes",
        content_type="text/plain",
        headings=[""],
        levels=[1],
        starts=[0],
        summaries=[""],
        chunks=["chunk-nobody"],
        digests="00",
        characters=1,
        resource_ids=[*resource_ids],
        scopes=["user:bob"],
        owner="user:bob",
    )
    await door.desk.ledger.append(NewEvent(forged, DOCUMENT, "user:bob"))
    await door.desk.view.wait_for(await door.head())


@pytest.mark.parametrize("who", [BOB, OPERATOR], ids=["bob", "operator"])
@pytest.mark.parametrize("what", ["remove", "ingest"])
@pytest.mark.parametrize("named", ["anns/res", original_id(DOCUMENT, 2), original_id("other")])
async def test_a_document_that_names_others_resources_leaves_them_as_they_are(
    door: Door, who: dict[str, str], what: str, named: str
) -> None:
    await resource(door, ALICE, named, scopes=["public"])
    await published(door, named)
    if what == "remove":
        answer = await door.delete(f"/api/documents/{DOCUMENT}", headers=who)
        assert answer.status_code == 200, answer.text
    else:
        answer = await door.post("/api/documents", json={"id": DOCUMENT, "text": "What was said."}, headers=who)
        assert answer.status_code == 201, answer.text
    assert await status(door, ALICE, named) == "active"


@pytest.mark.parametrize("named", ["bobs/res", original_id("other"), f"{original_id(DOCUMENT)}/1"])
async def test_a_document_that_names_its_owners_other_resources_leaves_them_as_they_are(door: Door, named: str) -> None:
    await resource(door, BOB, named)
    await published(door, named)
    assert (await door.delete(f"/api/documents/{DOCUMENT}", headers=OPERATOR)).status_code == 200
    assert await status(door, BOB, named) == "active"


@pytest.mark.parametrize("who", [BOB, OPERATOR], ids=["bob", "operator"])
async def test_every_part_of_the_original_is_retired_with_its_document(door: Door, who: dict[str, str]) -> None:
    text = "All was said. " * (PART // 3 * 2 // 14)
    sent = {"id": DOCUMENT, "text": text, "owner": "user:bob"}
    answer = await door.post("/api/documents", json=sent, headers=who)
    assert answer.status_code == 201, answer.text
    await door.desk.view.wait_for(await door.head())
    assert await status(door, BOB, original_id(DOCUMENT, 2)) == "active"
    answer = await door.post("/api/documents", json={**sent, "text": "Little was said."}, headers=who)
    assert answer.status_code == 201, answer.text
    assert await status(door, BOB, original_id(DOCUMENT, 2)) == "retired"
    assert await status(door, BOB, original_id(DOCUMENT)) == "active"
    assert (await door.delete(f"/api/documents/{DOCUMENT}", headers=who)).status_code == 200
    assert await status(door, BOB, original_id(DOCUMENT)) == "retired"


@pytest.mark.parametrize("who", [BOB, OPERATOR], ids=["bob", "operator"])
async def test_an_ingestion_whose_second_part_has_a_taken_id_changes_nothing(door: Door, who: dict[str, str]) -> None:
    await resource(door, ALICE, original_id(DOCUMENT, 2))
    head = await door.head()
    text = "All was said. " * (PART // 3 * 2 // 14)
    sent = {"id": DOCUMENT, "text": text, "owner": "user:bob"}
    refusal(await door.post("/api/documents", json=sent, headers=who), 403, "not_owner")
    assert await door.head() == head


async def test_an_ingestion_whose_event_cannot_be_kept_changes_nothing(door: Door) -> None:
    sent = {"id": DOCUMENT, "text": "What was said.", "url": "sealed:v1:x"}
    refusal(await door.post("/api/documents", json=sent, headers=BOB), 422, "invalid_payload")
    assert await door.head() == 0
