"""What rows K7, K9, K12, P3 and P4 of the mission say, asked of one door."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ledger.event import JsonObject
from tests.knowhub.doors import Command, Door, Http, Mcp, Sdk
from tests.knowhub.walking import Walk


def k7(walk: Walk) -> None:
    """The explicit call finds, the start tells the profile before the rest, and the focus of a goal recalls too."""
    door = walk.door(user="learner")
    item_id = door.save(content=f"记住 {walk.word}")
    assert item_id in [item["id"] for item in door.search(walk.word)]
    assert item_id in [item["id"] for item in focus(door, "goal-1", walk.word)["metadata"]["items"]]
    about = door.save(types=["user_profile"], task="称呼", content="叫我小安")
    told = startup(door, walk.word)
    assert [item["id"] for item in told["profile"]] == [about]
    assert item_id in [item["id"] for item in told["results"]]
    assert told["prompt"].index("叫我小安") < told["prompt"].index(walk.word)


def k9(walk: Walk) -> None:
    """The tree of files is written in the source's places, and brings its items back."""
    door = walk.door(user="archivist", agent="crawler")
    assert isinstance(door, Command)
    tree = Path(walk.open.enter_context(TemporaryDirectory()))
    liked = door.save(types=["user_profile"], tags={"category": "preference"}, content=f"喜欢 {walk.word}")
    known = door.save(owner=f"agent:{walk.own('crawler')}", scopes=[f"agent:{walk.own('crawler')}"])
    shown = door.save(types=["tool"], scopes=["public"], content=f"工具 {walk.word}")
    door.ask("export-tree", str(tree))
    places = {
        f"users/{walk.own('archivist')}/preferences.json": liked,
        f"agents/{walk.own('crawler')}/strategies.json": known,
        "global/tools.json": shown,
    }
    for place, item_id in places.items():
        assert item_id in [entry["id"] for entry in json.loads((tree / place).read_text("utf-8"))], place
    own = Path(walk.open.enter_context(TemporaryDirectory()))
    shutil.copytree(tree / "agents" / walk.own("crawler"), own / "agents" / walk.own("crawler"))
    told = door.ask("import-tree", str(own), "--agent", walk.own("crawler"))
    assert (told["refused"], told["unchanged"]) == ([], 1)


def k12(walk: Walk) -> None:
    """A focus recalls three items of score 3 and more, and they stay on the goal as a section that can be shown."""
    door = walk.door(agent="planner")
    said = {"task": f"迁移 {walk.word}", "types": ["plan"]}
    saved = {door.save(**said, content=f"{walk.word} 第 {number} 步") for number in range(5)}
    poor = door.save(**said, content=f"{walk.word} 别这样", score=2)
    focused = focus(door, "goal-123", f"迁移 {walk.word}")
    items = [item["id"] for item in focused["metadata"]["items"]]
    assert len(items) == 3
    assert set(items) <= saved - {poor}
    assert focused["title"] == "✅ Goal 已聚焦"
    assert f"当前 Goal: 迁移 {walk.word}\n\n📚 相关知识 (" in focused["output"]
    if not isinstance(door, Mcp):
        kept = goal(door, "goal-123")
        assert [item["id"] for item in kept["knowledge"]] == items
        assert focused["output"].endswith(kept["section"])


def p3(walk: Walk) -> None:
    """Each memory is a section of a system prompt, between the source's markers."""
    door = walk.door(user="ann")
    for memory, start in (("user", "USER_MEMORY"), ("work", "WORK_MEMORY")):
        match door:
            case Http():
                door.ask("PUT", f"/api/v1/memories/{memory}", {"content": {"occupation": "工程师"}})
                section = door.ask("GET", f"/api/v1/memories/{memory}/prompt")["prompt"]
            case Sdk():
                door.ask(door.ledger.profiles.put, memory, {"occupation": "工程师"})
                section = door.ask(door.ledger.profiles.prompt, memory)
            case _:
                assert isinstance(door, Command)
                door.ask("profile", "set", memory, '{"occupation": "工程师"}')
                section = door.ask("profile", "prompt", memory)["prompt"]
        assert section.startswith(f"<!-- {start}_START -->")
        assert section.rstrip().endswith(f"<!-- {start}_END -->")
        assert "工程师" in section


def p4(walk: Walk) -> None:
    """What is known of the user comes at the start, ordered by confidence and then by how often it helped."""
    door = walk.door(user="ann")
    said = {"types": ["user_profile"], "scopes": [f"user:{walk.own('ann')}"]}
    doubted, plain, proven = (door.save(**said, content=f"{word} {walk.word}") for word in ("或许", "也许", "确实"))
    door.judge(proven, "helpful", outcome="right")
    door.judge(proven, "helpful", outcome="right again")
    door.judge(doubted, "harmful", reason="wrong")
    assert door.one(proven)["eval"]["confidence"] > 0.5 > door.one(doubted)["eval"]["confidence"]
    told = [item["id"] for item in startup(door, "")["profile"]]
    assert told == [proven, plain, doubted]


def focus(door: Door, goal_id: str, description: str) -> JsonObject:
    """The answer to the focus of a goal."""
    told: Any
    match door:
        case Http():
            told = door.ask(
                "POST",
                f"/api/goals/{goal_id}/focus",
                {"description": description},
                min_position=door.after,
                language="zh",
            )
        case Sdk():
            told = door.ask(door.ledger.focus, goal_id, description, language="zh")
        case Mcp():
            told = door.ask("goal_focus", goal_id=goal_id, description=description, language="zh")
        case _:
            assert isinstance(door, Command)
            told = door.ask("focus", goal_id, description, "--language", "zh")
    return dict(told)


def goal(door: Door, goal_id: str) -> JsonObject:
    """A goal, as it stands."""
    match door:
        case Http():
            told: Any = door.ask("GET", f"/api/goals/{goal_id}", language="zh")
        case Sdk():
            told = door.ask(door.ledger.goal, goal_id, language="zh")
        case _:
            assert isinstance(door, Command)
            told = door.ask("goal", goal_id, "--language", "zh")
    return dict(told)


def startup(door: Door, query: str) -> JsonObject:
    """What an agent gets at its start."""
    match door:
        case Http():
            told: Any = door.ask("GET", "/api/recall/startup", q=query)
        case Sdk():
            told = door.ask(door.ledger.tools.knowledge_startup, query)
        case Mcp():
            told = door.ask("knowledge_startup", query=query)
        case _:
            assert isinstance(door, Command)
            told = door.ask("startup", query)
    return dict(told)
