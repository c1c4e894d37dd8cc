"""An ingestion with an Idempotency-Key is answered as before when it is sent again, and changes nothing then."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ledger.event import JsonObject
from tests.doors.http_door import ALICE, Door, http_door

FIRST, SECOND = "# Rules\n\nWe deploy on Tuesdays.\n", "# Rules\n\nWe deploy on Mondays, after lunch.\n"
RUNS = "The nightly build runs on Fridays at noon."
K1, K2 = "first-key", "second-key"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def ingested(door: Door, text: str, key: str | None = None) -> JsonObject:
    """The answer of a node that was started since, and so remembers no key."""
    door.client._transport.app.state.repeated._sent.clear()  # type: ignore[attr-defined]
    headers = ALICE if key is None else {**ALICE, "Idempotency-Key": key}
    answer = await door.post("/api/documents", json={"id": "rules.md", "text": text}, headers=headers)
    assert answer.status_code == 201, answer.text
    await door.desk.view.wait_for(await door.head())
    told: JsonObject = answer.json()
    return told


async def shown(door: Door) -> list[str]:
    document = (await door.get("/api/documents/rules.md", headers=ALICE)).json()
    return [each["content"] for each in document["chunks"]]


async def retired_before(door: Door) -> None:
    """A person retired what a document says."""
    item = await door.saved(content=RUNS)
    gone = await door.delete(f"/api/knowledge/{item['id']}?reason=wrong", headers=ALICE)
    await door.desk.view.wait_for(gone.json()["position"])


async def test_what_changes_nothing_appends_nothing_with_a_key_too(door: Door) -> None:
    await ingested(door, FIRST)
    head = await door.head()
    told = await ingested(door, FIRST, K1)
    assert (told["saved"], told["unchanged"], told["retired"]) == (0, 1, 0)
    assert await door.head() == head
    assert await shown(door) == ["We deploy on Tuesdays."]


async def test_a_repetition_of_what_held_a_chunk_is_answered_alike_and_appends_nothing(door: Door) -> None:
    await retired_before(door)
    text = f"# Rules\n\n{RUNS}\n\n# More\n\nWe deploy on Tuesdays.\n"
    told = await ingested(door, text, K1)
    assert (told["saved"], told["held"], told["unchanged"]) == (1, 1, 0)
    head = await door.head()
    assert await ingested(door, text, K1) == told | {"duplicate": True}
    assert await door.head() == head
    later = await ingested(door, SECOND, K2)
    assert later["retired"] == 2
    assert await ingested(door, text, K1) == told | {"duplicate": True}


@pytest.mark.parametrize("verb", ["release", "drop"])
async def test_it_is_answered_alike_after_the_chunk_was_decided_on(door: Door, verb: str) -> None:
    await retired_before(door)
    text = f"# Rules\n\n{RUNS}\n"
    await ingested(door, "# Rules\n\nNothing yet.\n")
    told = await ingested(door, text, K1)
    assert (told["saved"], told["held"], told["retired"]) == (0, 1, 1)
    (held,) = (await door.get("/api/memory/held", headers=ALICE)).json()["results"]
    decided = await door.post(f"/api/memory/held/{held['id']}/{verb}", json={}, headers=ALICE)
    assert decided.is_success, decided.text
    await door.desk.view.wait_for(await door.head())
    assert await ingested(door, text, K1) == told | {"duplicate": True}


async def test_after_a_removal_a_repetition_counts_what_it_saved_then(door: Door) -> None:
    await ingested(door, FIRST)
    assert (await door.delete("/api/documents/rules.md", headers=ALICE)).status_code == 200
    await door.desk.view.wait_for(await door.head())
    told = await ingested(door, FIRST, K1)
    assert (told["saved"], told["unchanged"], told["retired"]) == (1, 0, 0)
    assert await ingested(door, FIRST, K1) == told | {"duplicate": True}
