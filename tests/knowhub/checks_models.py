"""What rows K4 to K6 of the mission say, and K8 of routing, asked of one door: what models make of knowledge."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from ledger.event import JsonObject
from tests.journeys.running_node import until
from tests.knowhub.doors import Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.source import TOOLS
from tests.knowhub.walking import Walk

MODEL: str = TOOLS["knowledge_slim"]["model"]
"""The name that source 001 has as the default: stated, it is honoured like any other."""
KINDS = {"statement": "user_profile", "task": "strategy", "conversation": "definition", "feedback": "usecase"}
"""A type of what is found in each kind of material."""


def k4(walk: Walk) -> None:
    """A model rewrites the content; who, with which model and prompt, and why is kept, and so is what was before."""
    door = walk.door(agent="author")
    item_id = door.save(content=f"原来的内容 {walk.word}", scopes=["public"])
    walk.chat.says({"content": f"改进的内容 {walk.word}", "task": None, "reason": "更短"}, to=walk.word)
    evolution = evolve(door, item_id, f"改进建议 {walk.word}")
    assert (evolution["status"], evolution["item_id"], evolution["base_version"]) == ("applied", item_id, 1)
    assert evolution["feedback"] == f"改进建议 {walk.word}"
    assert evolution["usage"].items() >= {"model": "big", "calls": 1}.items()
    assert evolution["usage"]["prompt_version"].startswith("evolve-")
    item = door.one(item_id)
    assert (item["content"], item["task"]) == (f"改进的内容 {walk.word}", "在什么场景下要完成什么目标")
    with pytest.raises(Refused, match="not_owner"):
        evolve(walk.door(agent="somebody-else"), item_id, "把它改掉")
    if not isinstance(door, Mcp):  # it has no tool for histories
        assert [(each["change"], each["content"]) for each in versions(door, item_id)] == [
            ("saved", f"原来的内容 {walk.word}"),
            ("evolved", f"改进的内容 {walk.word}"),
        ]


def k5(walk: Walk) -> None:
    """Items that say the same become one, by the model that the caller names, and are brought back as a whole."""
    door = walk.door(agent="slimmer")
    said = {"task": "重试", "scopes": ["public"]}
    contents = (f"Retry a failed call of {walk.word} at most three times", f"一句完全不同的话 {walk.word}")
    first, other = door.save(**said, content=contents[0]), door.save(**said, content=f"Please: {contents[0]}")
    apart = door.save(**said, content=contents[1])
    both = {"task": f"重试 {walk.word}", "content": f"Retry {walk.word} three times"}
    walk.chat.says(both, to=walk.word)
    if not isinstance(door, Mcp):  # the tool merges at once, as the source's does
        dry = slim(door, "--dry-run")
        assert (dry["status"], dry["items_before"], dry["items_after"]) == ("reported", 3, 2)
        assert [(group["survivor"], [one["id"] for one in group["merged"]]) for group in dry["groups"]] == [
            (first, [other])
        ]
        assert {item["id"] for item in door.list() if walk.word in item["content"]} == {first, other, apart}
    done = slim(door)
    assert (done["status"], done["items_before"], done["items_after"], done["merged"]) == ("applied", 3, 2, 1)
    assert (done["model"], done["usage"]["model"], done["usage"]["calls"]) == ("small", "small", 1)
    assert done["usage"]["prompt_version"].startswith("slim-")
    assert {item["id"] for item in door.list() if walk.word in item["content"]} == {first, apart}
    assert {name: door.one(first)[name] for name in both} == both
    if isinstance(door, Mcp):
        return
    merged = door.one(other)
    assert (merged["status"], merged["merged_into"]) == ("merged", first)
    assert merged["content"] == f"Please: {contents[0]}"
    assert slim(door, "--revert", done["id"])["status"] == "reverted"
    assert [door.one(name)["content"] for name in (first, other)] == [contents[0], f"Please: {contents[0]}"]


def names_the_model(walk: Walk, *, configured: bool) -> None:
    """A slim names the model that merges: the one that was asked for, else the node's; none where there is none."""
    door = walk.door(agent="slimmer")
    for model in (MODEL, None):
        assert slim(door, model=model)["model"] == ((model or "big") if configured else None)


def has_messages_of(word: str, text: str) -> bool:
    """Whether a question to the model shows messages with this word."""
    return word in text and "<message id=" in text


def k6(walk: Walk) -> None:
    """What is found in each kind of material is kept with type, tags, scopes, owner and the ids of its messages."""
    door, me, project = walk.door(user="teller"), f"user:{walk.own('teller')}", f"project:{walk.own('web')}"
    for kind, type_ in KINDS.items():
        word = f"{kind}{walk.word}"
        found: JsonObject = {"type": type_, "task": f"任务 {word}", "content": f"内容 {word}", "domain": "office"}
        found |= {"category": "habit", "message_ids": [f"m1-{word}", "made-up"]}
        walk.chat.says({"verdicts": []}, to=word)
        walk.chat.says({"items": [found]}, to=partial(has_messages_of, word))
        messages = [
            {"id": f"m1-{word}", "role": "user", "content": f"说 {word}"},
            {"id": f"m2-{word}", "role": "assistant", "content": "好"},
        ]
        done = extract(walk, door, kind, messages, [me, project])
        assert (done["status"], done["kind"], done["messages"]) == ("completed", kind, 2)
        assert done["usage"]["prompt_version"]
        ((item_id, action),) = [(each["knowledge_id"], each["action"]) for each in done["items"]]
        assert action == "saved"
        item = door.one(item_id)
        assert (item["types"], item["task"], item["content"]) == ([type_], found["task"], found["content"])
        assert (item["owner"], item["scopes"]) == (me, [me, project])
        assert (item["tags"]["domain"], item["tags"]["message_ids"]) == ("office", [f"m1-{word}"])
        assert item["source"]["timestamp"].startswith("20")


def routing(walk: Walk) -> None:
    """A model may choose first among what the caller sees, by id, type and the beginning of the task alone."""
    door = walk.door(agent="router")
    task = f"保暖 {walk.word} " + "很长" * 60
    ids = [door.save(task=task, content=f"安静 {number}") for number in range(6)]
    walk.chat.says({"ids": [ids[4], "unknown", ids[1]]}, to=f"保暖 {walk.word}")
    told = routed(door, f"保暖 {walk.word}")
    assert (told["routed"], {item["id"] for item in told["results"]}) == (True, {ids[1], ids[4]})
    (asked,) = [call for call in walk.chat.asked if walk.word in call.text and ids[0] in call.text]
    assert asked.model == "small"
    assert task[:90] in asked.text
    assert task[:120] not in asked.text
    assert "安静" not in asked.text


def evolve(door: Door, item_id: str, feedback: str) -> JsonObject:
    """What came of having an item rewritten."""
    match door:
        case Http():
            told: Any = door.ask("PUT", f"/api/knowledge/{item_id}", {"evolve_feedback": feedback})
        case Sdk():
            told = door.ask(door.ledger.evolve, item_id, feedback)
        case Mcp():
            told = door.ask("knowledge_update", knowledge_id=item_id, evolve_feedback=feedback)
        case _:
            assert isinstance(door, Command)
            told = door.ask("evolve", item_id, feedback)
    assert told["done"], told
    evolution: JsonObject = told["evolution"]
    return evolution


def versions(door: Door, item_id: str) -> list[JsonObject]:
    """Every version of an item."""
    match door:
        case Http():
            told: Any = door.ask("GET", f"/api/knowledge/{item_id}/history")
        case Sdk():
            told = door.ask(door.ledger.history, item_id)
        case _:
            assert isinstance(door, Command)
            told = door.ask("history", item_id)
    return list(told["versions"])


def slim(door: Door, *words: str, model: str | None = "small") -> JsonObject:
    """A slim by a model (None: the node's), once it is done; `--dry-run`, or `--revert` of one by its id."""
    revert, dry_run = words[1] if words[:1] == ("--revert",) else "", words == ("--dry-run",)
    match door:
        case Http():
            body = None if revert else {**({"model": model} if model else {}), "dry_run": dry_run}
            asked = door.ask("POST", f"/api/slims/{revert}/revert" if revert else "/api/knowledge/slim", body)
            until(lambda: door.ask("GET", f"/api/slims/{asked['id']}")["done"], f"the slim {asked['id']} is done")
            told: Any = door.ask("GET", f"/api/slims/{asked['id']}")
        case Sdk():
            ledger = door.ledger
            told = door.ask(ledger.slim_revert, revert) if revert else door.ask(ledger.slim, model, dry_run=dry_run)
        case Mcp():
            plan = door.ask("knowledge_slim", **({"model": model} if model else {}))
            assert (plan["dry_run"], plan["status"]) == (True, "reported")
            told = door.ask("knowledge_slim", apply=plan["id"])
        case _:
            assert isinstance(door, Command)
            told = door.ask("slim", *words, *(["--model", model] if model and not revert else []))
    assert told["done"], told
    return dict(told)


def extract(walk: Walk, door: Door, kind: str, messages: list[JsonObject], scopes: list[str]) -> JsonObject:
    """What was found in messages."""
    match door:
        case Http():
            told: Any = door.ask(
                "POST", "/api/knowledge/extract", {"kind": kind, "messages": messages, "scopes": scopes}
            )
        case Sdk():
            told = door.ask(door.ledger.extract, messages=messages, kind=kind, scopes=scopes)
        case Mcp():
            told = door.ask("knowledge_extract", conversation=messages, kind=kind, scopes=scopes)
        case _:
            assert isinstance(door, Command)
            file = Path(walk.open.enter_context(TemporaryDirectory())) / "messages.json"
            file.write_text(json.dumps(messages), "utf-8")
            told = door.ask("extract", str(file), "--kind", kind, "--scopes", ",".join(scopes))
    return dict(told)


def routed(door: Door, query: str) -> JsonObject:
    """What a search answers whose first stage is a model's."""
    match door:
        case Http():
            told: Any = door.ask("GET", "/api/knowledge/search", q=query, top_k=2, route=True)
        case Sdk():
            told = door.ask(door.ledger.search, query, top_k=2, route=True)
        case _:
            assert isinstance(door, Command)
            told = door.ask("search", query, "--top-k", "2", "--route")
    return dict(told)
