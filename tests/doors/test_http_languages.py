"""Which texts does somebody read who asks in English, in Chinese, or in no language at all?"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.doors.http_door import ALICE, Door, http_door, refusal
from tests.mcp.mcp_door import McpDoor, mcp_door

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(id="k1", task="Move the database", content="Copy it first", types=["strategy"])
        await opened.saved(id="p1", task="How alice reads", content="The result first", types=["user_profile"])
        yield opened


async def texts(door: Door, headers: dict[str, str] | None = None, **params: Any) -> dict[str, str]:
    """Every text that the interface words itself, by where it is."""
    who = {**ALICE, **(headers or {})}
    await door.patch("/api/v1/memories/user", json={"content": {"occupation": "cook"}}, headers=ALICE)
    fresh = {"min_position": await door.head(), **params}
    goals = "/api/goals/g"
    body = {"description": "Move the database"}
    focused = (await door.post(f"{goals}/focus", params=params, json=body, headers=who)).json()
    start = (await door.get("/api/recall/startup", params=fresh, headers=who)).json()
    shown = (await door.get(goals, params={**fresh, "min_position": focused["position"]}, headers=who)).json()
    listed = (await door.get("/api/prompts", params=params, headers=who)).json()["prompts"]
    handed = (await door.get("/api/prompts/research", params=params, headers=who)).json()
    remembered = (await door.get("/api/v1/memories/user/prompt", params=fresh, headers=who)).json()
    return {
        "title": focused["title"],
        "output": focused["output"],
        "startup": start["prompt"],
        "start's memory": start["sections"]["user_memory"],
        "memory": remembered["prompt"],
        "section": shown["section"],
        "titles": " ".join(each["title"] for each in listed),
        "prompt": handed["text"],
    }


@pytest.mark.parametrize(
    ("headers", "params", "chinese"),
    [
        ({}, {}, False),
        ({"Accept-Language": "en-US,en;q=0.9,zh;q=0.1"}, {}, False),
        ({"Accept-Language": "fr-FR"}, {}, False),
        ({"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}, {}, True),
        ({"Accept-Language": "zh-CN"}, {"language": "en"}, False),
        ({"Accept-Language": "en"}, {"language": "zh"}, True),
    ],
)
async def test_every_text_is_in_the_language_asked_for_and_in_english_without_one(
    door: Door, headers: dict[str, str], params: dict[str, str], chinese: bool
) -> None:
    for name, text in (await texts(door, headers, **params)).items():
        assert bool(CHINESE.search(text)) is chinese, (name, text)


async def test_the_nodes_setting_counts_for_who_asks_in_no_language(door: Door) -> None:
    door.desk.language = "zh"
    assert (await texts(door))["title"] == "✅ Goal 已聚焦"
    assert (await texts(door, {"Accept-Language": "de"}))["title"] == "✅ Goal 已聚焦"
    assert (await texts(door, {"Accept-Language": "en"}))["title"] == "✅ Goal focused"


async def test_a_language_without_texts_is_refused_by_name(door: Door) -> None:
    for path in (
        "/api/recall/startup",
        "/api/v1/memories/work/prompt",
        "/api/prompts",
        "/api/prompts/research",
        "/api/goals/g",
    ):
        refusal(await door.get(path, params={"language": "fr"}, headers=ALICE), 422, "invalid_payload")


async def test_the_tools_answer_in_the_language_of_their_caller() -> None:
    async with mcp_door() as door:
        assert (await focus(door))["title"] == "✅ Goal focused"
        assert (await focus(door, {"Accept-Language": "zh-CN"}))["title"] == "✅ Goal 已聚焦"
        assert (await focus(door, {"Accept-Language": "zh-CN"}, language="en"))["title"] == "✅ Goal focused"
        assert (await focus(door, language="zh"))["title"] == "✅ Goal 已聚焦"
        for wanted, chinese in (({}, False), ({"Accept-Language": "zh"}, True)):
            listed = (await door.post("prompts/list", wanted)).json()["result"]["prompts"]
            handed = (await door.post("prompts/get", wanted, name="research")).json()["result"]
            assert all(bool(CHINESE.search(each["title"])) is chinese for each in listed)
            assert bool(CHINESE.search(handed["messages"][0]["content"]["text"])) is chinese


async def focus(door: McpDoor, who: dict[str, str] | None = None, **more: Any) -> Any:
    return await door.call("goal_focus", who, goal_id="g", description="Move the database", **more)


async def test_what_nobody_said_of_an_item_is_not_shown_as_said(door: Door) -> None:
    focused = (await texts(door))["output"]
    assert "(k1; not judged yet)" in focused
    judged = {"add_helpful_case": {"task": "t"}, "add_harmful_case": {"task": "u"}}
    await door.put("/api/knowledge/k1", json=judged, headers=ALICE)
    await door.saved(id="k2", task="Move the database again", content="Copy it twice", eval={"score": 5})
    again = (await texts(door))["output"]
    assert "(k1; score 3, helped 1, harmed 1, confidence 0." in again
    assert "(k2; score 5, not judged yet)" in again
