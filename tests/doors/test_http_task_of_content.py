"""A task that was made from the content of its item says what the content says, also once that is revised."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.event import JsonObject
from tests.doors.furnished import KEY, asked_later
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

K, M = "/api/knowledge", "/api/memory"
TEA = {"layer": "semantic", "content": "Alice drinks tea. Every morning.", "id": "drink"}
COFFEE = "Alice drinks coffee. Every evening."


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def revised(door: Door, item_id: str, who: dict[str, str] = ALICE, **body: Any) -> JsonObject:
    answer = await door.put(f"{K}/{item_id}", json=body, headers=who)
    assert answer.status_code == 200, answer.text
    await door.desk.view.wait_for(await door.head())
    now: JsonObject = (await door.get(f"{K}/{item_id}", headers=ALICE)).json()
    return now


async def test_a_task_that_was_made_from_the_content_is_made_anew_with_it(door: Door) -> None:
    assert (await door.post(M, json=TEA, headers=ALICE)).status_code == 201
    now = await revised(door, "drink", content=COFFEE)
    assert (now["task"], now["version"]) == ("Alice drinks coffee", 2)
    assert "tea" not in str(now)
    history = (await door.get(f"{K}/drink/history", headers=ALICE)).json()["versions"]
    assert [each["task"] for each in history] == ["Alice drinks tea", "Alice drinks coffee"]


async def test_whoever_may_write_makes_it_anew_as_well(door: Door) -> None:
    shared = {"acl": [{"entity": "user:bob", "permission": "read_write"}]}
    assert (await door.post(M, json=TEA | shared, headers=ALICE)).status_code == 201
    assert (await revised(door, "drink", BOB, content=COFFEE))["task"] == "Alice drinks coffee"


@pytest.mark.parametrize(
    ("saved", "revision", "task"),
    [
        ({"task": "What Alice drinks"}, {"content": COFFEE}, "What Alice drinks"),
        ({}, {"content": COFFEE, "task": "Drinks"}, "Drinks"),
        ({}, {"tags": {"drink": "tea"}}, "Alice drinks tea"),
        ({}, {"content": "Alice drinks tea. Every evening."}, "Alice drinks tea"),
        ({}, {"content": COFFEE, "task": ""}, ""),
    ],
    ids=["a task of its own", "a task beside it", "no content", "the same first sentence", "an empty task"],
)
async def test_any_other_task_stays(door: Door, saved: JsonObject, revision: JsonObject, task: str) -> None:
    assert (await door.post(M, json=TEA | saved, headers=ALICE)).status_code == 201
    assert (await revised(door, "drink", **revision))["task"] == task


async def test_a_retry_is_the_same_request_also_where_the_log_alone_remembers_it() -> None:
    async with http_door() as door:
        assert (await door.post(M, json=TEA, headers=ALICE)).status_code == 201
        first = await door.put(f"{K}/drink", json={"content": COFFEE}, headers=ALICE | KEY)
        again, other, less = [
            await asked_later(door, "PUT", f"{K}/drink", body, ALICE)
            for body in ({"content": COFFEE}, {"content": COFFEE, "task": "Drinks"}, {"content": "Alice drinks tea."})
        ]
        assert again.json() == first.json()
        for each in (other, less):
            refusal(each, 422, "idempotency_mismatch")
