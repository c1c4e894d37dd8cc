"""The memory endpoints of source 003: created with defaults, replaced, patched, disabled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from ledger.events.profile import memory_id
from producers.operations.profiles.reading import MEMORY_TYPES
from tests.doors.http_door import ALICE, Door, http_door

M = "/api/v1/memories"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def read(door: Door, path: str = "") -> Any:
    """What the endpoint answers once the view has everything."""
    return (await door.get(M + path, params={"min_position": await door.head()}, headers=ALICE)).json()


async def test_both_memories_are_there_from_the_first_look_on_with_their_defaults(door: Door) -> None:
    before = await read(door)
    assert await read(door, "/user") == before["user_memory"]
    assert await read(door, "/work") == before["work_memory"]
    assert (await door.get(M + "/user/prompt", headers=ALICE)).json()["prompt"] is None
    assert await door.head() == 0
    answer = await door.post(M, headers=ALICE)
    assert answer.status_code == 200
    told = answer.json()
    assert told == before
    assert answer.headers["X-Ledger-Position"] == "2"
    assert set(told["user_memory"]) == {
        *("occupation", "timezone", "primary_language", "people", "places", "preferences"),
        *("scheduling_preferences", "interests", "avoid_topics", "custom_rules", "recurring_routines"),
    }
    assert set(told["work_memory"]) == {
        *("occupation", "expertise", "preferred_tools", "current_projects", "work_habits"),
        *("team_members", "team_context", "work_rules"),
    }
    assert told["work_memory"]["work_habits"]["preferred_meeting_duration_minutes"] == [30, 60]
    assert (await door.post(M + "/", headers=ALICE)).json() == told
    assert await door.head() == 2


async def test_registering_twice_at_once_creates_each_memory_once(door: Door) -> None:
    answers = await asyncio.gather(*(door.post(M, headers=ALICE) for _ in range(4)))
    assert {a.status_code for a in answers} == {200}
    assert all(a.json() == answers[0].json() for a in answers)
    assert await door.head() == 2


async def kinds(door: Door) -> list[tuple[str, str]]:
    """Each event about a memory: what it is, and of which of the two."""
    events = [event async for events in door.desk.ledger.read() for event in events]
    said = (orjson.loads(event.body) for event in events)
    return [(one["type"], one["data"]["memory_type"]) for one in said]


async def test_the_first_change_of_either_memory_begins_both_at_once(door: Door) -> None:
    await door.patch(M + "/work", json={"content": {"expertise": ["sql"]}}, headers=ALICE)
    begins = [("profile.created", "user"), ("profile.created", "work")]
    assert await kinds(door) == [*begins, ("profile.patched", "work")]
    assert (await read(door))["user_memory"]["interests"] == []
    await door.put(M + "/user", json={"content": {"occupation": "cook"}}, headers=ALICE)
    await door.patch(M + "/user", json={"content": {"timezone": "Asia/Shanghai"}}, headers=ALICE)
    assert (await kinds(door))[3:] == [("profile.replaced", "user"), ("profile.patched", "user")]


async def test_first_changes_of_both_memories_at_once_begin_each_once(door: Door) -> None:
    both = [door.put(f"{M}/{name}", json={"content": {"occupation": "a"}}, headers=ALICE) for name in ("user", "work")]
    assert {answer.status_code for answer in await asyncio.gather(*both)} == {200}
    told = await kinds(door)
    assert sorted(told) == sorted(
        (f"profile.{verb}", of) for verb in ("created", "replaced") for of in ("user", "work")
    )


async def test_a_memory_of_which_nothing_was_said_can_be_disabled(door: Door) -> None:
    assert (await door.delete(M + "/user", headers=ALICE)).json()["status"] == "disabled"
    told = await read(door)
    assert told["user_memory"] is None
    assert told["work_memory"] is not None


async def test_the_id_of_a_memory_is_a_uuid_that_every_answer_and_the_view_agree_on(door: Door) -> None:
    await door.put(M + "/user", json={"content": {"occupation": "cook"}}, headers=ALICE)
    await read(door)
    rows = await door.desk.view.ask(
        lambda cursor: cursor.execute("SELECT memory_type, id, owner FROM profiles ORDER BY memory_type").fetchall()
    )
    wanted = {name: memory_id("default", "user:alice", name) for name in MEMORY_TYPES}
    assert rows == [(name, wanted[name], "user:alice") for name in ("user", "work")]
    history = (await door.get(M + "/user/history", headers=ALICE)).json()
    assert history["id"] == str(wanted["user"])
    assert (await door.delete(M + "/work", headers=ALICE)).json()["id"] == str(wanted["work"])


async def test_a_missing_memory_is_created_by_what_is_put_or_patched(door: Door) -> None:
    answer = await door.put(M + "/user", json={"content": {"occupation": "厨师"}}, headers=ALICE)
    assert answer.json()["occupation"] == "厨师"
    assert answer.json()["interests"] == []
    assert answer.headers["X-Ledger-Position"] == "3"
    patch = {"work_habits": {"notes": "early"}, "expertise": ["sql"]}
    patched = await door.patch(M + "/work", json={"content": patch}, headers=ALICE)
    assert patched.json()["work_habits"]["notes"] == "early"
    both = await read(door)
    assert both == {"user_memory": answer.json(), "work_memory": patched.json()}


async def test_a_patch_merges_null_removes_and_lists_replace(door: Door) -> None:
    content = {
        "occupation": "cook",
        "people": [{"name": "Li", "meta": {"confidence": 0.9, "last_updated_at": "2026-03-05T12:00:00Z"}}],
        "preferences": {"communication_style": "brief", "language_preference": ["zh"]},
    }
    await door.put(M + "/user", json={"content": content}, headers=ALICE)
    patch = {"occupation": None, "preferences": {"language_preference": ["en"]}, "people": [{"name": "Wu"}]}
    answer = (await door.patch(M + "/user", json={"content": patch}, headers=ALICE)).json()
    assert answer["occupation"] is None
    assert answer["preferences"]["communication_style"] == "brief"
    assert answer["preferences"]["language_preference"] == ["en"]
    assert [person["name"] for person in answer["people"]] == ["Wu"]
    assert await read(door, "/user") == answer


async def test_concurrent_patches_are_all_kept(door: Door) -> None:
    await door.post(M, headers=ALICE)
    fields = ("occupation", "timezone", "primary_language")
    answers = await asyncio.gather(
        *(door.patch(M + "/user", json={"content": {name: name}}, headers=ALICE) for name in fields)
    )
    assert {a.status_code for a in answers} == {200}
    content = await read(door, "/user")
    assert {name: content[name] for name in fields} == {name: name for name in fields}


async def test_a_disabled_memory_is_null_until_it_is_put_again(door: Door) -> None:
    await door.post(M, headers=ALICE)
    gone = await door.delete(M + "/work", params={"reason": "left"}, headers=ALICE)
    assert (gone.json()["status"], gone.json()["memory_type"]) == ("disabled", "work")
    assert await read(door, "/work") is None
    assert (await read(door))["work_memory"] is None
    assert (await read(door))["user_memory"] is not None
    await door.put(M + "/work", json={"content": {"expertise": ["go"]}}, headers=ALICE)
    assert (await read(door, "/work"))["expertise"] == ["go"]


async def test_a_memory_that_a_foreign_writer_shaped_otherwise_is_told_as_it_is(door: Door) -> None:
    from ledger.event import NewEvent
    from ledger.events.profile import ProfileCreated

    fact = ProfileCreated(owner="user:alice", memory_type="user", content={"mood": "fine"})
    await door.desk.ledger.append(NewEvent(fact, "user:alice/user", "user:alice"))
    assert await read(door, "/user") == {"mood": "fine"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_a_field_that_a_memory_does_not_have_is_told_with_those_that_there_are(door: Door, method: str) -> None:
    answer = await door.request(method, M + "/work", json={"content": {"tools": ["git"], "rules": []}}, headers=ALICE)
    told = answer.json()["error"]["message"]
    assert answer.status_code == 422
    assert told.count("there are occupation, expertise, preferred_tools, ") == 1, told


async def test_a_patch_of_a_part_is_told_which_fields_that_part_has(door: Door) -> None:
    answer = await door.request("PATCH", M + "/work", json={"content": {"work_habits": {"hours": []}}}, headers=ALICE)
    assert "there are work_habits.available_hours, " in answer.json()["error"]["message"]
