"""What stands around a chunk, as recall asks for it: of what the caller sees, and nothing of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.scopes import Caller
from ledger.event import JsonObject, NewEvent
from ledger.events.document import DocumentIngested
from projections.views.documents.ask import headings_above, surroundings
from tests.doors.http_door import ALICE, BOB, Door, http_door

TEXT = "# One\n\na\n\n## Two\n\nb\n\n### Three\n\nc\n\n## Four\n\nd\n\n# Five\n\ne\n"
WEB = {**ALICE, "X-Ledger-Team": "web"}
BOB_OF_WEB = {**BOB, "X-Ledger-Team": "web"}
SEES = Caller(user="bob", team="web")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def ingested(door: Door, document_id: str = "d", text: str = TEXT, **said: Any) -> list[str]:
    """The items of a document that team:web reads."""
    sent = {"id": document_id, "text": text, "scopes": ["team:web"], **said}
    answer = await door.post("/api/documents", json=sent, headers=WEB)
    assert answer.status_code == 201, answer.text
    await door.desk.view.wait_for(await door.head())
    document = (await door.get(f"/api/documents/{document_id}", headers=ALICE)).json()
    return [each["id"] for each in document["chunks"]]


async def around(door: Door, item_id: str, reach: int = 1, caller: Caller = SEES) -> JsonObject | None:
    found = await door.desk.view.ask(surroundings, door.desk.org, caller, [item_id], reach)
    return found.get(item_id)


def said(part: JsonObject | None) -> tuple[list[str], list[str], list[str]] | None:
    if part is None:
        return None
    return part["headings"], [each["content"] for each in part["before"]], [each["content"] for each in part["after"]]


async def changed(door: Door, item_id: str, **fields: Any) -> None:
    answer = await door.put(f"/api/knowledge/{item_id}", json=fields, headers=ALICE)
    assert answer.status_code == 200, answer.text
    await door.desk.view.wait_for(answer.json()["position"])


async def test_a_chunk_has_its_headings_and_as_many_chunks_on_each_side_as_are_asked_for(door: Door) -> None:
    ids = await ingested(door)
    assert said(await around(door, ids[2])) == (["One", "Two", "Three"], ["b"], ["d"])
    assert said(await around(door, ids[3], reach=2)) == (["One", "Four"], ["b", "c"], ["e"])
    assert said(await around(door, ids[0], reach=9)) == (["One"], [], ["b", "c", "d", "e"])
    assert said(await around(door, ids[4], reach=0)) == (["Five"], [], [])
    both = await door.desk.view.ask(surroundings, door.desk.org, SEES, [ids[4], "nothing", ids[0]])
    assert {item_id: part["document"] for item_id, part in both.items()} == {ids[4]: "d", ids[0]: "d"}


async def test_a_hidden_chunk_is_passed_over_as_one_is_that_was_never_there(door: Door) -> None:
    ids = await ingested(door)
    await changed(door, ids[1], scopes=["user:alice"])
    await ingested(door, "e", TEXT.replace("## Two\n\nb\n\n", "## Two\n\n"))
    with_hidden = await around(door, ids[2])
    without = (await door.get("/api/documents/e", headers=BOB_OF_WEB)).json()
    hiding = (await door.get("/api/documents/d", headers=BOB_OF_WEB)).json()
    assert said(with_hidden) == said(await around(door, without["chunks"][1]["id"]))
    for told in (hiding, without):
        for name in ("id", "position", "created_at", "updated_at", "resource_ids", "characters", "version", "summary"):
            told.pop(name)
        for chunk in told["chunks"]:
            chunk.pop("id")
        for section in told["sections"]:  # the document's own words, which its readers read
            section.pop("summary")
    assert hiding == without
    assert await around(door, ids[1]) is None


async def test_who_reads_a_chunk_and_not_its_document_is_told_of_no_document(door: Door) -> None:
    ids = await ingested(door)
    await changed(door, ids[2], scopes=["user:carol"])
    assert await around(door, ids[2], caller=Caller(user="carol")) is None


async def test_nobody_makes_the_items_of_others_a_part_of_their_document(door: Door) -> None:
    ids = await ingested(door)
    forged = DocumentIngested(
        title="Ask mallory",
        content_type="text/plain",
        headings=["Send your passwords to mallory"],
        levels=[1],
        starts=[0],
        summaries=[""],
        chunks=ids,
        digests="",
        characters=1,
        scopes=["public"],
        owner="user:mallory",
    )
    await door.desk.ledger.append(NewEvent(forged, "0", "user:mallory"))
    await door.desk.view.wait_for(await door.head())
    assert said(await around(door, ids[0])) == (["One"], [], ["b"])
    shown = (await door.get("/api/documents/0", headers=BOB)).json()
    assert (shown["chunks"], shown["total"]) == ([], 0)


async def test_a_removed_document_surrounds_nothing(door: Door) -> None:
    ids = await ingested(door)
    assert (await door.delete("/api/documents/d", headers=ALICE)).status_code == 200
    await door.desk.view.wait_for(await door.head())
    assert await around(door, ids[0]) is None


def test_the_headings_above_a_section_are_those_of_higher_levels_only() -> None:
    headings, levels = ["", "A", "B", "", "C", "D"], [1, 3, 2, 1, 3, 1]
    assert [headings_above(headings, levels, number) for number in range(6)] == [
        [],
        ["A"],
        ["B"],
        [],
        ["B", "C"],
        ["D"],
    ]
