"""An item that was just saved is read before the view has it, and is what the view then says it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from producers.http.routes.direct_items import DirectItems
from projections.engine.parking import fold_strictly
from projections.live import projector
from tests.doors.http_door import ALICE, BOB, Door, http_door
from tests.doors.one_app import app_of
from tests.patience import PATIENCE

K = "/api/knowledge"
PLAIN = {"task": "fix the lamp", "content": "turn the fuse", "types": ["tool"], "scopes": ["public"]}
ELSEWHERE = {"sort": "oldest"}
"""A list that waits for the fold of what is new in it."""
SAVES: list[dict[str, Any]] = [
    PLAIN,
    {**PLAIN, "id": "mine/lamp 1", "tags": {"room": ["hall", 2], "灯": None, "on": True}, "score": 5},
    {**PLAIN, "source": {"name": "a book", "urls": ["https://example.org"], "trace_id": "t-1", "message_id": "m-1"}},
    {**PLAIN, "trace_id": "t-2", "created_at": "2026-03-05T12:00:00+01:00", "eval": {"confidence": 0.25}},
    {"content": "Look first. Then turn the fuse; it's 'quoted' and has\na line break.", "types": ["plan", "tool"]},
]


@pytest.fixture
def folding(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Events are folded while this is set."""
    goes_on = threading.Event()
    goes_on.set()

    def fold(*given: Any) -> Any:
        assert goes_on.wait(PATIENCE)
        return fold_strictly(*given)

    monkeypatch.setattr(projector, "fold_strictly", fold)
    yield goes_on
    goes_on.set()


@pytest.fixture
async def door(folding: threading.Event) -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(task="an older lamp")
        yield opened
        folding.set()


async def saved_only(door: Door, folding: threading.Event, save: dict[str, Any]) -> dict[str, Any]:
    """Save an item that the view does not get for now."""
    folding.clear()
    answer = await door.post(K, json=save, headers=ALICE)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    await door.desk.view.ahead.until(told["position"], PATIENCE)
    return told


def address(item_id: str) -> str:
    return f"{K}/{item_id.replace('/', '%2F').replace(' ', '%20')}"


@pytest.mark.parametrize("save", SAVES, ids=range(len(SAVES)))
async def test_an_item_is_read_before_its_fold_as_after_it(
    door: Door, folding: threading.Event, save: dict[str, Any]
) -> None:
    told = await saved_only(door, folding, save)
    before = await door.get(address(told["id"]), headers=ALICE)
    assert before.status_code == 200, before.text
    assert door.desk.view.position < told["position"]
    folding.set()
    await door.desk.view.wait_for(told["position"], PATIENCE)
    after = await door.get(address(told["id"]), headers=ALICE)
    assert before.json() == after.json()


async def test_others_need_not_wait_for_what_is_not_about_their_item(door: Door, folding: threading.Event) -> None:
    older = (await door.saved(BOB, task="another lamp"))["id"]
    told = await saved_only(door, folding, PLAIN)
    asked = {"min_position": told["position"]}
    assert (await door.get(f"{K}/{older}", params=asked, headers=BOB)).json()["task"] == "another lamp"
    assert (await door.get(f"{K}/none", params=asked, headers=BOB)).status_code == 404


async def test_who_was_shown_an_item_before_its_fold_searches_what_has_it_or_is_told(
    door: Door, folding: threading.Event
) -> None:
    told = await saved_only(door, folding, PLAIN)
    shown = await door.get(address(told["id"]), params={"min_position": told["position"]}, headers=BOB)
    assert shown.status_code == 200, shown.text
    asked: dict[str, Any] = {"q": "fix the lamp", "record": "false"}
    early = await door.get(f"{K}/search", params={**asked, "wait": 0}, headers=BOB)
    assert "vectors" in {lack["part"] for lack in early.json()["degraded"]}, early.text
    folding.set()
    found = (await door.get(f"{K}/search", params=asked, headers=BOB)).json()
    assert (found["degraded"], found["results"][0]["id"]) == ([], told["id"])


async def test_who_may_not_read_an_item_is_answered_as_if_there_were_none(door: Door, folding: threading.Event) -> None:
    told = await saved_only(door, folding, {**PLAIN, "scopes": ["user:alice"]})
    asked = {"min_position": told["position"], "wait": 0}
    for _ in range(2):  # before the fold, and after it
        theirs = await door.get(address(told["id"]), params=asked, headers=BOB)
        nobodys = await door.get(address("no-such-item"), params=asked, headers=BOB)
        assert theirs.json()["error"]["code"] == nobodys.json()["error"]["code"] == "unknown_knowledge"
        assert theirs.status_code == 404
        assert door.desk.view.shown == 0
        folding.set()
        await door.desk.view.wait_for(told["position"], PATIENCE)


async def test_an_item_that_came_after_what_its_reader_asked_for_is_waited_for_as_well(
    door: Door, folding: threading.Event
) -> None:
    first = await saved_only(door, folding, {**PLAIN, "task": "the first lamp"})
    later = await saved_only(door, folding, PLAIN)
    older = {"min_position": first["position"]}
    assert (await door.get(address("no-such-item"), params=older, headers=BOB)).status_code == 404
    assert door.desk.view.shown == 0
    assert (await door.get(address(later["id"]), params=older, headers=BOB)).status_code == 200
    assert door.desk.view.shown == later["position"]


@pytest.mark.parametrize("how", ["item", "list"])
async def test_who_has_read_ahead_reads_nothing_older_after_that(
    door: Door, folding: threading.Event, how: str
) -> None:
    told = await saved_only(door, folding, PLAIN)
    read = address(told["id"]) if how == "item" else K
    now: dict[str, Any] = {"wait": 0, **ELSEWHERE}
    assert (await door.get(K, params=now, headers=BOB)).json()["degraded"] == []
    await door.get(read, params={"min_position": told["position"]}, headers=BOB)
    (lack,) = (await door.get(K, params=now, headers=BOB)).json()["degraded"]
    assert lack["part"] == "view"


@pytest.mark.parametrize("how", ["item", "list"])
async def test_what_somebody_was_shown_is_in_what_others_read_next(
    door: Door, folding: threading.Event, how: str
) -> None:
    told = await saved_only(door, folding, PLAIN)
    read = address(told["id"]) if how == "item" else K
    assert (await door.get(read, headers=ALICE)).status_code == 200
    at_once = (await door.get(K, params={"wait": 0}, headers=BOB)).json()
    assert told["id"] in [item["id"] for item in at_once["results"]]
    listing = asyncio.create_task(door.get(K, params=ELSEWHERE, headers=BOB))
    async with asyncio.timeout(PATIENCE):
        await door.desk.view.awaited.wait()
    folding.set()
    assert told["id"] in [item["id"] for item in (await listing).json()["results"]]


async def test_a_fold_that_is_held_up_holds_up_nobody_who_was_shown_nothing(
    door: Door, folding: threading.Event
) -> None:
    told = await saved_only(door, folding, PLAIN)
    assert (await door.get(address(told["id"]), headers=ALICE)).status_code == 200
    at_once: dict[str, Any] = {"wait": 0, **ELSEWHERE}
    assert (await door.get(K, params=at_once, headers=BOB)).json()["degraded"] == []  # who does not wait
    assert door.desk.view.shown == told["position"]
    assert (await door.get(K, params=ELSEWHERE, headers=BOB)).json()["degraded"] == []
    assert door.desk.view.shown == 0
    assert (await door.get(K, params=ELSEWHERE, headers=BOB)).status_code == 200


async def test_a_list_has_before_the_fold_what_it_has_after_it(door: Door, folding: threading.Event) -> None:
    for save in SAVES:
        told = await saved_only(door, folding, save)
    first = {"limit": 4, "min_position": told["position"]}
    asked = [{}, first, {**first, "offset": 3}, {**first, "types": "plan"}, {**first, "min_score": 5}]
    before = [(await door.get(K, params=params, headers=ALICE)).json() for params in asked]
    assert door.desk.view.position < told["position"]
    following = {"before": before[1]["next"], "min_position": told["position"]}
    assert len((await door.get(K, params=following, headers=ALICE)).json()["results"]) == 2
    assert door.desk.view.position < told["position"]
    folding.set()
    await door.desk.view.wait_for(told["position"], PATIENCE)
    assert [(await door.get(K, params=params, headers=ALICE)).json() for params in asked] == before


async def test_a_list_shows_nobody_what_is_not_theirs_before_the_fold(door: Door, folding: threading.Event) -> None:
    told = await saved_only(door, folding, {**PLAIN, "scopes": ["user:alice"]})
    asked = {"min_position": told["position"], "wait": 0}
    theirs = (await door.get(K, params=asked, headers=BOB)).json()
    assert (theirs["total"], theirs["results"]) == (0, [])
    assert theirs["position"] == told["position"]
    assert door.desk.view.shown == 0
    mine = (await door.get(K, params=asked, headers=ALICE)).json()
    assert (mine["total"], mine["results"][0]["id"]) == (2, told["id"])


@pytest.mark.parametrize(
    "asked", [{"sort": "updated"}, {"tags": "room"}, {"concern": "never_recalled"}, {"as_of": "1"}]
)
async def test_a_list_that_no_new_row_can_tell_waits_for_the_fold(
    door: Door, folding: threading.Event, asked: dict[str, str]
) -> None:
    told = await saved_only(door, folding, {**PLAIN, "tags": {"room": "hall"}})
    behind = {"min_position": told["position"], "wait": 0, **asked}
    assert (await door.get(K, params=behind, headers=ALICE)).json()["error"]["code"] == "view_behind"


PAGES = [
    "",
    "limit=2",
    "limit=1&offset=1",
    "before=3",
    "limit=0",
    "limit=many",
    "offset=-1",
    "limit=1&limit=2",
    "limmit=1",
]


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_is_the_same_whether_or_not_the_framework_answers(door: Door, page: str) -> None:
    for number in range(3):
        last = await door.saved(task=f"lamp {number}")
    asked = f"{page}&min_position={last['position']}"
    alone = await door.get(f"{K}?{asked}")
    through_the_framework = await door.get(f"{K}?{asked}&status=active")
    assert (alone.status_code, alone.json()) == (through_the_framework.status_code, through_the_framework.json())


async def test_no_other_route_is_taken_for_an_item(door: Door) -> None:
    app = app_of(door.desk)
    direct = DirectItems(app, app.router.routes)
    assert direct.takes({"method": "GET", "path": f"{K}/an-id"})
    others = [route for route in app.router.routes if isinstance(route, APIRoute) and route.path != f"{K}/{{item_id}}"]
    for route in others:
        for method in route.methods or ():
            taken = (method, route.path) in (("POST", K), ("GET", K))
            assert direct.takes({"method": method, "path": route.path}) == taken
