"""A PUT with several fields keeps all that it can, and says of each field what became of it (source 001)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.knowhub import source

K = "/api/knowledge"
KEPT = {"update_score", "add_helpful_case", "add_harmful_case"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def judged(door: Door, item_id: str, position: int) -> tuple[int, int, int]:
    told = (await door.get(f"{K}/{item_id}", params={"min_position": position}, headers=ALICE)).json()["eval"]
    return told["score"], told["helpful"], told["harmful"]


async def test_the_four_fields_of_the_source_are_taken_at_once_where_there_is_no_model(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    answer = await door.put(f"{K}/k", json={**source.UPDATE, **source.EVOLVE}, headers=ALICE)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert {name for name, each in told["fields"].items() if each["kept"]} == KEPT
    assert told["fields"]["evolve_feedback"]["error"]["code"] == "not_available"
    by_field = [told["fields"][name]["position"] for name in ("update_score", "add_helpful_case", "add_harmful_case")]
    assert by_field == [event["position"] for event in told["events"]]
    assert await judged(door, "k", told["position"]) == (4, 2, 1)


async def test_verdicts_and_score_of_a_reader_are_kept_beside_what_is_the_owners_alone(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    said = {**source.UPDATE, **source.EVOLVE, "content": "otherwise", "tags": {"a": "b"}}
    told = (await door.put(f"{K}/k", json=said, headers=BOB)).json()
    assert {name for name, each in told["fields"].items() if each["kept"]} == KEPT
    assert {told["fields"][name]["error"]["code"] for name in ("content", "tags")} == {"not_owner"}
    assert await judged(door, "k", told["position"]) == (4, 2, 1)
    assert (await door.get(f"{K}/k")).json()["content"] == "some content of k"


async def test_a_request_of_which_nothing_can_be_kept_is_refused_and_changes_nothing(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    head = await door.head()
    refusal(await door.put(f"{K}/k", json=source.EVOLVE, headers=ALICE), 501, "not_available")
    refusal(await door.put(f"{K}/k", json={"content": "x"}, headers=BOB), 403, "not_owner")
    refusal(await door.put(f"{K}/k", json={**source.EVOLVE, "content": "x"}, headers=BOB), 403, "not_owner")
    assert await door.head() == head


async def test_what_is_kept_of_a_request_is_kept_once_however_often_it_is_sent(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    said = {"add_helpful_case": {"outcome": "done"}, "update_score": 4, "content": "x"}
    first, again = [await door.put(f"{K}/k", json=said, headers={**BOB, "Idempotency-Key": "key"}) for _ in range(2)]
    assert first.status_code == 200, first.text
    assert again.json() == first.json()
    assert await judged(door, "k", first.json()["position"]) == (4, 2, 0)


async def test_every_field_that_is_kept_is_told_with_its_position(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    told = (await door.put(f"{K}/k", json={"content": "x", "task": "y", "update_score": 5}, headers=ALICE)).json()
    assert told["fields"] == {
        "task": {"kept": True, "position": told["events"][0]["position"]},
        "content": {"kept": True, "position": told["events"][0]["position"]},
        "update_score": {"kept": True, "position": told["events"][1]["position"]},
    }


async def test_the_position_of_an_answer_is_that_of_the_part_that_knew_least(door: Door) -> None:
    told = await door.saved(id="k", scopes=["public"])
    door.desk.searcher.behind = 1
    for path in (f"{K}/search", "/api/recall/startup"):
        asked = (await door.get(path, params={"q": "content", "record": "false"}, headers=BOB)).json()
        assert asked["position"] == told["position"] - 1, path
    listed = (await door.get(K, headers=BOB)).json()
    assert listed["position"] == told["position"], "a list is the view's alone"
