"""What does a page of a list say of the whole, and is the whole read by going from page to page?"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client.transport.over_httpx import HttpxTransport
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.doors.scripted_node import scripted_node

KNOWLEDGE, RESOURCE = "/api/knowledge", "/api/resource"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def save(door: Door, path: str, name: str, who: dict[str, str] = ALICE, **fields: Any) -> None:
    body = {"id": name, "task": name, "content": "c", "types": ["tool"]}
    if path == RESOURCE:
        body = {"id": name, "title": name, "body": "b"}
    answer = await door.post(path, json={**body, **fields}, headers=who)
    assert answer.status_code == 201, answer.text


async def page(door: Door, path: str, who: dict[str, str] = ALICE, **params: Any) -> Any:
    answer = await door.get(path, params={"min_position": await door.head(), **params}, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", [KNOWLEDGE, RESOURCE])
async def test_the_total_counts_what_the_caller_sees_and_the_filters_let_through(door: Door, path: str) -> None:
    for number in range(5):
        await save(door, path, f"own-{number}")
    for number in range(3):
        await save(door, path, f"others-{number}", BOB)
    await save(door, path, "shared", BOB, scopes=["public"])
    first = await page(door, path, limit=2)
    assert (first["count"], first["total"]) == (2, 6)
    assert (await page(door, path, limit=2, offset=4))["total"] == 6
    assert (await page(door, path, limit=2, before=first["next"]))["total"] == 6
    assert (await page(door, path, BOB))["total"] == 4
    assert (await page(door, path, {}))["total"] == 9  # who names nobody reads all
    await door.delete(f"{path}/own-0", headers=ALICE)
    assert [(await page(door, path, status=status))["total"] for status in ("active", "retired", "all")] == [5, 1, 6]
    assert (await page(door, path, as_of=2))["total"] == 2
    last = await page(door, path, limit=10)
    assert (last["count"], last["total"], last["next"]) == (5, 5, None)


@pytest.mark.parametrize("path", [KNOWLEDGE, RESOURCE])
@pytest.mark.parametrize("seed", range(4))
async def test_page_after_page_gives_each_once_while_others_write_change_and_withdraw(
    door: Door, path: str, seed: int
) -> None:
    chance = random.Random(seed)
    names = [f"n-{number:02}" for number in range(30)]
    for name in names:
        await save(door, path, name)
    seen: list[str] = []
    withdrawn: set[str] = set()
    before: int | None = None
    while True:
        params: dict[str, Any] = {} if before is None else {"before": before}
        answer = await page(door, path, limit=4, **params)
        seen += [each["id"] for each in answer["results"]]
        if (before := answer["next"]) is None:
            break
        await save(door, path, f"new-{len(seen)}")
        changed, gone = chance.sample(sorted(set(names) - withdrawn), 2)
        if path == KNOWLEDGE:
            await door.put(f"{path}/{changed}", json={"content": f"after {len(seen)}"}, headers=ALICE)
        else:
            await save(door, path, changed, body=f"after {len(seen)}")
        await door.delete(f"{path}/{gone}", headers=ALICE)
        withdrawn.add(gone)
    assert len(seen) == len(set(seen))
    assert set(names) - withdrawn <= set(seen) <= set(names)
    assert seen == sorted(seen, reverse=True)


async def test_a_page_before_no_position_is_refused(door: Door) -> None:
    for path in (KNOWLEDGE, RESOURCE):
        for value in ("-1", "x", str(2**63)):
            refusal(await door.get(path, params={"before": value}, headers=ALICE), 422, "invalid_payload")


async def test_processes_are_counted_as_well(door: Door) -> None:
    for path in ("/api/evolutions", "/api/extractions", "/api/conflicts", "/api/slims"):
        answer = await page(door, path)
        assert (answer["results"], answer["count"], answer["total"]) == ([], 0, 0)


async def test_both_faces_of_the_client_iterate_from_page_to_page(door: Door) -> None:
    for number in range(7):
        await save(door, KNOWLEDGE, f"k-{number}", types=["plan" if number % 2 else "tool"])
        await save(door, RESOURCE, f"r/{number}")
    ledger = AsyncLedgerClient("http://127.0.0.1:8420")
    ledger.wire.connection.transport = HttpxTransport.over(door.client)  # in place of a socket
    alice = ledger.acting_as(user="alice").seeing(await door.head())
    assert [item["id"] async for item in alice.iterate(page=2)] == [f"k-{number}" for number in range(6, -1, -1)]
    assert [item["id"] async for item in alice.iterate(page=3, types=["plan"])] == ["k-5", "k-3", "k-1"]
    assert [each["id"] async for each in alice.resources.iterate(page=7)] == [f"r/{n}" for n in range(6, -1, -1)]


def test_the_plain_face_asks_for_the_next_page_only_when_it_is_needed() -> None:
    with scripted_node() as node:
        for path in (KNOWLEDGE, RESOURCE):
            node.says(f"GET {path}", {"results": [{"id": "b"}, {"id": "a"}], "next": 4})
            node.says(f"GET {path}", {"results": [{"id": "0"}], "next": None})
        with LedgerClient(node.url) as ledger:
            items = ledger.iterate(page=2, owner="user:ann")
            assert next(items)["id"] == "b"
            assert len(node.asked) == 1
            assert [item["id"] for item in items] == ["a", "0"]
            assert [each["id"] for each in ledger.resources.iterate(page=2)] == ["b", "a", "0"]
    assert [asked.query.get("before") for asked in node.asked] == [None, "4", None, "4"]
    assert node.asked[1].query["owner"] == "user:ann"
