"""Documents over HTTP: ingested, read, ingested again, removed; who may, and who sees what."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.event import JsonObject
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

HANDBOOK = """# Handbook

How this team works.

## Deploying

We deploy on Tuesdays before noon. The release manager presses the button.

## The database

Run `make db` first.

### Backups

A backup is taken each night at two.
"""
WEB = {**ALICE, "X-Ledger-Team": "web"}
BOB_OF_WEB = {**BOB, "X-Ledger-Team": "web"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def ingested(door: Door, who: dict[str, str] = ALICE, **said: Any) -> JsonObject:
    """Ingest a document and wait until it can be read."""
    answer = await door.post("/api/documents", json={"id": "handbook.md", "text": HANDBOOK, **said}, headers=who)
    assert answer.status_code == 201, answer.text
    told: JsonObject = answer.json()
    await door.desk.view.wait_for(told["position"])
    return told


async def shown(door: Door, who: dict[str, str] = ALICE, document_id: str = "handbook.md") -> JsonObject:
    answer = await door.get(f"/api/documents/{document_id}", headers=who)
    assert answer.status_code == 200, answer.text
    document: JsonObject = answer.json()
    return document


async def item(door: Door, item_id: str, who: dict[str, str] = ALICE) -> JsonObject:
    answer = await door.get(f"/api/knowledge/{item_id}", headers=who)
    assert answer.status_code == 200, answer.text
    found: JsonObject = answer.json()
    return found


async def test_a_document_becomes_sections_and_items_below_their_headings(door: Door) -> None:
    told = await ingested(door, url="https://example.com/handbook")
    assert (told["title"], told["sections"], told["saved"], told["retired"], told["duplicate"]) == (
        *("Handbook", 4, 4, 0),
        False,
    )
    document = await shown(door)
    assert [each["heading"] for each in document["sections"]] == ["Handbook", "Deploying", "The database", "Backups"]
    assert [each["content"] for each in document["chunks"]] == [
        "How this team works.",
        "We deploy on Tuesdays before noon. The release manager presses the button.",
        "Run `make db` first.",
        "A backup is taken each night at two.",
    ]
    backups = await item(door, document["chunks"][3]["id"])
    assert backups["task"] == "Handbook › The database › Backups"
    assert (backups["types"], backups["owner"], backups["scopes"]) == (["document"], "user:alice", ["user:alice"])
    assert backups["source"]["urls"] == ["https://example.com/handbook"]


async def test_an_item_tells_its_document_and_what_stands_before_and_after_it(door: Door) -> None:
    await ingested(door)
    ids = [each["id"] for each in (await shown(door))["chunks"]]
    parts = [(await item(door, each))["part"] for each in ids]
    assert [(part["before"], part["after"]) for part in parts] == [
        (None, ids[1]),
        (ids[0], ids[2]),
        (ids[1], ids[3]),
        (ids[2], None),
    ]
    assert parts[3] == {
        "document": "handbook.md",
        "title": "Handbook",
        "headings": ["Handbook", "The database", "Backups"],
        "before": ids[2],
        "after": None,
    }
    links = (await door.get(f"/api/lineage?ref={ids[3]}", headers=ALICE)).json()
    assert {"document"} == {each["entity"] for each in links["edges"] if each["relation"] == "chunk"}


async def test_the_original_is_kept_as_a_resource_of_the_same_readers(door: Door) -> None:
    await ingested(door, WEB, scopes=["team:web"])
    (kept,) = (await shown(door, WEB))["resource_ids"]
    original = (await door.get(f"/api/resource/{kept}", headers=BOB_OF_WEB)).json()
    assert (original["body"], original["content_type"], original["owner"]) == (HANDBOOK, "markdown", "user:alice")


async def test_ingesting_the_same_again_appends_nothing(door: Door) -> None:
    first = await ingested(door)
    head = await door.head()
    again = await ingested(door)
    assert await door.head() == head
    assert (again["duplicate"], again["saved"], again["unchanged"], again["retired"]) == (True, 0, 4, 0)
    assert (again["version"], again["event_id"]) == (first["version"], first["event_id"])


async def test_after_an_edit_only_what_changed_is_saved_and_what_is_gone_is_retired(door: Door) -> None:
    await ingested(door)
    before = [each["id"] for each in (await shown(door))["chunks"]]
    head = await door.head()
    edited = HANDBOOK.replace("at two", "at three").replace("## Deploying", "## Hiring\n\nAsk Ann.\n\n## Deploying")
    told = await ingested(door, text=edited)
    assert (told["saved"], told["unchanged"], told["retired"], told["version"]) == (2, 3, 1, 2)
    # The original, the document, two chunks saved and one retired.
    assert await door.head() == head + 5
    after = [each["id"] for each in (await shown(door))["chunks"]]
    assert (after[0], after[2:4]) == (before[0], before[1:3])
    assert (await item(door, before[3]))["status"] == "retired"
    assert "part" not in await item(door, before[3])


async def test_what_its_owner_corrected_or_retired_stays_so_while_the_document_says_the_same(door: Door) -> None:
    await ingested(door)
    ids = [each["id"] for each in (await shown(door))["chunks"]]
    assert (
        await door.put(f"/api/knowledge/{ids[1]}", json={"content": "On Mondays."}, headers=ALICE)
    ).status_code == 200
    gone = await door.delete(f"/api/knowledge/{ids[2]}?reason=wrong", headers=ALICE)
    assert gone.status_code == 200
    await door.desk.view.wait_for(gone.json()["position"])
    told = await ingested(door, text=HANDBOOK + "\nOne more line.\n")
    assert (told["saved"], told["retired"]) == (1, 1)
    assert (await item(door, ids[1]))["content"] == "On Mondays."
    assert (await item(door, ids[2]))["status"] == "retired"


async def test_new_scopes_are_those_of_every_chunk_but_one_that_has_its_own(door: Door) -> None:
    await ingested(door, WEB)
    ids = [each["id"] for each in (await shown(door))["chunks"]]
    own = await door.put(f"/api/knowledge/{ids[0]}", json={"scopes": ["team:hr"]}, headers=WEB)
    await door.desk.view.wait_for(own.json()["position"])
    told = await ingested(door, WEB, scopes=["team:web"])
    assert (told["saved"], told["unchanged"]) == (0, 4)
    await door.desk.view.wait_for(await door.head())
    seen = await shown(door, BOB_OF_WEB)
    assert [each["id"] for each in seen["chunks"]] == ids[1:]
    assert seen["total"] == 3
    assert (await item(door, ids[1], BOB_OF_WEB))["part"]["before"] is None
    kept = await ingested(door, WEB)
    assert (await shown(door))["scopes"] == ["team:web"]
    assert kept["duplicate"]


async def test_who_does_not_own_a_document_neither_changes_nor_removes_it(door: Door) -> None:
    await ingested(door, WEB, scopes=["team:web"])
    sent = {"id": "handbook.md", "text": "Mine now."}
    refusal(await door.post("/api/documents", json=sent, headers=BOB_OF_WEB), 403, "not_owner")
    refusal(await door.delete("/api/documents/handbook.md", headers=BOB_OF_WEB), 403, "not_owner")
    refusal(await door.delete("/api/documents/handbook.md", headers=BOB), 404, "unknown_document")
    taken = refusal(await door.post("/api/documents", json=sent, headers=BOB), 403, "not_owner")
    assert "alice" not in taken


async def test_who_does_not_read_a_document_is_told_nothing_of_it(door: Door) -> None:
    told = await ingested(door)
    missing = await door.get("/api/documents/other.md", headers=BOB)
    hidden = await door.get("/api/documents/handbook.md", headers=BOB)
    assert hidden.text == missing.text.replace("other.md", "handbook.md")
    listed = (await door.get("/api/documents", headers=BOB)).json()
    assert (listed["results"], listed["total"]) == ([], 0)
    ids = [each["id"] for each in (await shown(door))["chunks"]]
    shared = await door.put(
        f"/api/knowledge/{ids[1]}/acl", json={"acl": [{"entity": "user:bob", "permission": "read"}]}, headers=ALICE
    )
    assert shared.status_code == 200, shared.text
    await door.desk.view.wait_for(shared.json()["position"])
    assert "part" not in await item(door, ids[1], BOB)
    assert told["position"] <= await door.head()


async def test_a_removed_document_is_out_of_lists_and_its_chunks_are_retired(door: Door) -> None:
    await ingested(door)
    ids = [each["id"] for each in (await shown(door))["chunks"]]
    answer = await door.delete("/api/documents/handbook.md?reason=old", headers=ALICE)
    assert answer.status_code == 200, answer.text
    await door.desk.view.wait_for(await door.head())
    assert (await door.get("/api/documents", headers=ALICE)).json()["total"] == 0
    assert (await door.get("/api/documents?status=removed", headers=ALICE)).json()["total"] == 1
    assert {(await item(door, each))["status"] for each in ids} == {"retired"}
    refusal(await door.delete("/api/documents/handbook.md", headers=ALICE), 409, "illegal_state")
    back = await ingested(door)
    assert (back["saved"], back["version"]) == (4, 3)
    assert len((await shown(door))["chunks"]) == 4


async def test_a_file_is_sent_as_a_form_or_in_base64_with_the_same_result(door: Door) -> None:
    page = b"<html><title>Rules</title><body><h1>Rules</h1><p>Be kind.</p></body></html>"
    form = await door.post(
        "/api/documents",
        files={"file": ("rules.html", page, "text/html")},
        data={"id": "rules", "scopes": ["team:web", "user:alice"], "url": "https://example.com"},
        headers=WEB,
    )
    assert form.status_code == 201, form.text
    said = form.json()
    assert (said["title"], said["saved"]) == ("Rules", 1)
    body = {"name": "rules.html", "content": base64.b64encode(page).decode()}
    again = await ingested(door, WEB, id="rules", text=None, file=body, url="https://example.com")
    assert again["duplicate"]
    assert (await shown(door, WEB, "rules"))["scopes"] == ["team:web", "user:alice"]


async def test_a_repeated_request_is_answered_alike_and_another_under_its_key_is_refused(door: Door) -> None:
    key = {**ALICE, "Idempotency-Key": "3f1f3f5e-0d2a-4d0c-9a53-3f0f7c6f4a51"}
    first = await ingested(door, key)
    door.client._transport.app.state.repeated._sent.clear()  # type: ignore[attr-defined] # as after a restart
    head = await door.head()
    again = await ingested(door, key)
    assert again == first | {"duplicate": True}
    assert await door.head() == head
    door.client._transport.app.state.repeated._sent.clear()  # type: ignore[attr-defined]
    other = {"id": "handbook.md", "text": "# Handbook\n\nSomething else."}
    refusal(await door.post("/api/documents", json=other, headers=key), 422, "idempotency_mismatch")


async def test_neither_text_nor_file_or_both_is_told_as_what_the_body_states(door: Door) -> None:
    for said, states in (({}, "neither `text` nor `file`"), ({"text": "a", "file": {"content": "YQ=="}}, "both")):
        answer = await door.post("/api/documents", json=said, headers=ALICE)
        assert f"it states {states}" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ({}, 422, "invalid_payload"),
        ({"text": "a", "file": {"content": "YQ=="}}, 422, "invalid_payload"),
        ({"file": {"content": "not base64"}}, 422, "invalid_payload"),
        ({"file": {"content": "YQ=="}}, 422, "invalid_payload"),
        ({"text": "a", "content_type": "image/png"}, 422, "invalid_payload"),
        ({"text": "a", "id": "../secret"}, 422, "invalid_payload"),
        ({"text": "a", "id": "x" * 151}, 422, "invalid_payload"),
        ({"text": " \n "}, 422, "invalid_payload"),
        ({"text": "a", "content_type": "pdf"}, 422, "unreadable_document"),
        ({"text": "a", "owner": "user:bob"}, 403, "not_owner"),
        ({"text": "a", "scopes": ["nothing"]}, 422, "illegal_scope"),
    ],
)
async def test_what_cannot_be_ingested_is_refused_and_appends_nothing(
    door: Door, said: JsonObject, status: int, code: str
) -> None:
    refusal(await door.post("/api/documents", json=said, headers=ALICE), status, code)
    assert await door.head() == 0
