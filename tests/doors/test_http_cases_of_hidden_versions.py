"""What was said of an item among its readers of before is told to nobody to whom it was opened since."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.doors.http_door import ALICE, BOB, Door, http_door

K = "/api/knowledge/k"
CAROL = {"X-Ledger-User": "carol"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """A door with an item that Alice and Bob judged alone, and then all."""
    async with http_door() as opened:
        await opened.saved(id="k", scopes=["user:alice", "user:bob"])
        for who, task in ((ALICE, "her divorce"), (BOB, "his debts")):
            await put(opened, who, {"add_helpful_case": {"task": task}})
        await put(opened, ALICE, {"scopes": ["public"]})
        await put(opened, CAROL, {"add_harmful_case": {"task": "a walk"}})
        yield opened


async def put(door: Door, who: dict[str, str], body: dict[str, Any]) -> None:
    answer = await door.put(K, json=body, headers=who)
    assert answer.status_code == 200, answer.text
    await door.desk.view.wait_for(await door.head())


async def told(door: Door, who: dict[str, str]) -> list[set[str]]:
    """The cases of the item, of its history, and of its lineage."""
    lineage = (await door.get("/api/lineage", params={"ref": "k"}, headers=who)).json()["events"]
    item = (await door.get(K, headers=who)).json()["eval"]
    life = (await door.get(f"{K}/history", headers=who)).json()["feedback"]
    around = [event["case"] for event in lineage if event.get("case")]
    both = item["helpful_history"] + item["harmful_history"]
    return [{case["task"] for case in each} for each in (both, life, around)]


async def test_cases_are_told_to_those_who_read_the_version_that_they_judge(door: Door) -> None:
    everything = {"her divorce", "his debts", "a walk"}
    assert await told(door, ALICE) == [everything] * 3
    assert await told(door, {}) == [everything] * 3, "the operator reads all"
    assert await told(door, BOB) == [everything] * 3
    assert await told(door, CAROL) == [{"a walk"}] * 3


async def test_who_judged_a_version_keeps_the_case_when_it_is_closed_to_them_and_opened_again(door: Door) -> None:
    await put(door, ALICE, {"scopes": ["user:alice"]})
    await put(door, ALICE, {"add_helpful_case": {"task": "her own"}})
    await put(door, ALICE, {"scopes": ["public"]})
    assert await told(door, CAROL) == [{"a walk"}] * 3
    assert await told(door, BOB) == [{"her divorce", "his debts", "a walk"}] * 3
