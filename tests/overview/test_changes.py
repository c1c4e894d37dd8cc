"""What does somebody hear who asks again and again what changed?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.event import Head
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.test_short_memories import K, read

CHANGES = "/api/overview/changes"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def changes(door: Door, who: dict[str, str] = ALICE, **asked: Any) -> dict[str, Any]:
    await door.desk.view.wait_for(await door.head())
    return await read(door, CHANGES, who, **asked)


def told(found: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(each["id"], each["change"], each["version"]) for each in found["changes"]]


async def test_changes_come_in_the_order_of_the_log_with_verdicts(door: Door) -> None:
    await door.saved(id="a")
    start = await door.head()
    await door.saved(id="b", task="first")
    await door.put(f"{K}/b", json={"add_helpful_case": {}}, headers=ALICE)
    await door.put(f"{K}/b", json={"task": "second"}, headers=ALICE)
    await door.put(f"{K}/b", json={"add_harmful_case": {}}, headers=ALICE)
    await door.delete(f"{K}/a", headers=ALICE)
    found = await changes(door, after=start)
    assert told(found) == [
        ("b", "saved", 1),
        ("b", "rated", 1),
        ("b", "revised", 2),
        ("b", "rated", 2),
        ("a", "retired", 2),
    ]
    assert [each["position"] for each in found["changes"]] == list(range(start + 1, start + 6))
    assert {each["actor"] for each in found["changes"]} == {"user:alice"}
    assert {each["task"] for each in found["changes"] if each["id"] == "b"} == {"second"}
    assert found["next"] == found["position"] == await door.head()
    assert (await changes(door, after=found["next"]))["changes"] == []


async def test_who_asks_page_after_page_hears_each_change_once(door: Door) -> None:
    for number in range(7):
        await door.saved(BOB if number % 3 == 1 else ALICE, id=f"k{number}")
    seen, after = [], 0
    while True:
        found = await changes(door, after=after, limit=2)
        seen += [each["id"] for each in found["changes"]]
        after = found["next"]
        if not found["changes"]:
            break
    assert seen == ["k0", "k2", "k3", "k5", "k6"]
    assert after == found["position"]


async def test_what_others_may_see_no_more_is_not_told_of(door: Door) -> None:
    await door.saved(BOB, id="bobs", scopes=["user:alice"], task="for alice")
    assert told(await changes(door)) == [("bobs", "saved", 1)]
    start = await door.head()
    await door.put(f"{K}/bobs", json={"scopes": ["user:bob"], "content": "now mine"}, headers=BOB)
    await door.put(f"{K}/bobs", json={"add_harmful_case": {}}, headers=BOB)
    found = await changes(door, after=start)
    assert (found["changes"], found["next"]) == ([], found["position"])
    assert told(await changes(door)) == []
    await door.put(f"{K}/bobs", json={"scopes": ["public"]}, headers=BOB)
    assert told(await changes(door)) == [("bobs", "saved", 1), ("bobs", "rated", 2), ("bobs", "revised", 3)]


async def test_a_view_that_has_not_moved_is_not_asked(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    await door.saved(id="a")
    position = await door.head()

    async def ask(*_: Any) -> None:
        raise AssertionError("nothing changed, and the view was asked")

    monkeypatch.setattr(door.desk.view, "ask", ask)
    found = await changes(door, after=position)
    assert (found["changes"], found["next"], found["position"]) == ([], position, position)


async def test_a_position_that_the_log_has_not_is_refused_and_one_that_the_view_alone_has_not_is_none(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    await door.saved(id="a")
    position = await door.head()
    await door.desk.view.wait_for(position)
    for path, who in ((CHANGES, ALICE), ("/api/admin/refused", {})):
        answer = await door.get(path, params={"after": position + 10}, headers=who)
        said = refusal(answer, 422, "invalid_payload")
        assert f"after {position + 10} is beyond the head of the log, which is {position}" in said

    async def ahead() -> Head:
        return Head(position + 10, 0)

    monkeypatch.setattr(door.desk.ledger, "head", ahead)
    assert (await read(door, CHANGES, ALICE, after=position + 10))["next"] == position + 10


async def test_filters_narrow_what_is_told_and_the_next_position_passes_over_the_rest(door: Door) -> None:
    await door.saved(id="order-1", types=["order", "tool"], scopes=["team:shop"])
    await door.saved(id="a,b", types=["tool"])
    await door.saved(BOB, id="bobs", types=["order"], scopes=["public"])
    await door.put(f"{K}/order-1", json={"add_helpful_case": {}}, headers=ALICE)
    await door.put(f"{K}/order-1", json={"types": ["invoice"]}, headers=ALICE)
    await door.delete(f"{K}/order-1", headers=ALICE)
    whole = [("order-1", "saved", 1), ("order-1", "rated", 1), ("order-1", "revised", 2), ("order-1", "retired", 3)]

    async def heard(**asked: Any) -> list[tuple[str, str, int]]:
        found = await changes(door, **asked)
        assert found["next"] == await door.head()
        return told(found)

    assert await heard(id="order-1") == await heard(types="invoice,poem") == whole
    assert await heard(scopes="team:shop") == whole
    assert await heard(id="order-1", change="rated,retired") == [whole[1], whole[3]]
    assert await heard(change="rated") == [whole[1]]
    assert await heard(types="order") == await heard(owner="user:bob") == [("bobs", "saved", 1)]
    assert await heard(id="a\\,b") == [("a,b", "saved", 1)]
    assert await heard(id="nothing") == await heard(change="promoted") == []
    assert told(await changes(door, BOB, id="order-1,bobs")) == [("bobs", "saved", 1)]  # a filter gives no right
    page = await changes(door, id="order-1", limit=2)
    assert (told(page), page["next"]) == (whole[:2], page["changes"][-1]["position"])


async def test_a_question_that_does_not_fit_is_refused(door: Door) -> None:
    wrong = {"change": "deleted"}, {"types": "Not A Type"}, {"scopes": "nowhere"}, {"owner": "x"}, {"scopes": "guild:x"}
    for params in wrong:
        answer = await door.get(CHANGES, params=params, headers=ALICE)
        assert answer.status_code in (400, 422), (params, answer.text)
        assert answer.json()["error"]["code"] in ("invalid_payload", "illegal_scope"), answer.text
    for params in ({"after": "-1"}, {"after": "x"}, {"limit": "0"}, {"limit": "1001"}):
        refusal(await door.get(CHANGES, params=params, headers=ALICE), 422, "invalid_payload")
