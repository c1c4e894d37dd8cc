"""What rows R1 to R6 of the mission say, asked of one door."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import httpx

from ledger.event import JsonObject
from tests.journeys.running_node import until
from tests.knowhub.doors import Command, Door, Http, Mcp, Sdk
from tests.knowhub.walking import Walk
from tests.patience import PATIENCE

FACTORS = {"relevance", "recency", "layer", "intent", "confidence", "use", "score"}


def r1(walk: Walk) -> None:
    """Words, meaning, freshness and neighbours at once, reranked by five factors; the best five, in both languages."""
    door = walk.door(user="asker")
    for said in ("发布流程", "release process"):
        for number in range(7):
            door.save(task=f"{said} {walk.word}", content=f"{said} {walk.word} step {number}")
        answer = recall(door, f"{said} {walk.word}")
        assert len(answer["results"]) == 5
        assert all(set(item["why"]) >= FACTORS for item in answer["results"])
        scores = [item["why"]["score"] for item in answer["results"]]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= item["match"] <= 1 for item in answer["results"])
    assert recall(door, "How do I bake sourdough bread?")["nothing_known"]


def r2(walk: Walk) -> None:
    """The `<memory>` document of source 004 §3.2, line by line, in Chinese."""
    door = walk.door(user="asker", project="shop")
    remember(door, content=f"偏好 TypeScript + React 技术栈 {walk.word}", layer="semantic", confidence=0.95)
    remember(door, content=f"修复了登录页面布局问题 (flex 错位) {walk.word}", layer="episodic")
    steps = ["1. 风格检查", "2. 安全审计", "3. 改进建议"]
    remember(door, layer="procedural", name=f"代码审查流程 {walk.word}", steps=steps)
    door.save(task=f"部署 {walk.word}", content=f"用蓝绿发布 {walk.word}")
    text = recall(door, f"{walk.word} 部署 审查 登录 偏好", language="zh")["text"]
    assert text.startswith("<memory>")
    assert text.endswith("</memory>")
    for section, line in (
        ("user_preferences", rf"- 偏好 TypeScript \+ React 技术栈 {walk.word} \(置信度: 95%, 来源: 1次对话\)"),
        ("recent_episodes", rf"- \[今天\] 修复了登录页面布局问题 \(flex 错位\) {walk.word}"),
        ("relevant_procedures", rf"- 代码审查流程 {walk.word}: 风格检查 → 安全审计 → 改进建议"),
        ("related_knowledge", rf"- 部署 {walk.word}: 用蓝绿发布 {walk.word} \(.*\)"),
    ):
        assert re.search(rf"<{section}>\n{line}\n</{section}>", text), text


def r3(walk: Walk) -> None:
    """What a message asks for decides which layers answer it first (source 004 §3.3)."""
    door = walk.door(user="asker", project="shop")
    remember(door, content=f"The {walk.word} service runs on port 8080.", layer="semantic")
    remember(door, content=f"The {walk.word} service ran into a bug on Friday.", layer="episodic")
    remember(door, layer="procedural", name=f"start the {walk.word} service", steps=["build", "run"])
    for message, intent, layer in (
        (f"build a page for the {walk.word} service", "new_task", "semantic"),
        (f"fix the bug of the {walk.word} service", "bug_fix", "episodic"),
        (f"do I prefer the {walk.word} service", "preference", "semantic"),
        (f"and what about the {walk.word} service", "follow_up", "episodic"),
        (f"what did the review agent do with the {walk.word} service", "cross_agent", "procedural"),
    ):
        answer = recall(door, message)
        assert answer["intent"] == intent
        fits = {item["layer"]: item["why"]["intent"] for item in answer["results"]}
        assert fits[layer] == max(fits.values()) > 0


def r4(walk: Walk) -> None:
    """A question in other words finds what its own do not; a chunk comes with its headings and neighbours."""
    door = walk.door(user="asker")
    door.save(task=f"user authentication {walk.word}x", content="Clear the cookie, then check the token.")
    queries = [f"怎么修那个登录的 bug {walk.word}", f"user authentication {walk.word}x"]
    walk.chat.says({"queries": queries}, to=f"那个登录的 bug {walk.word}")

    def is_found() -> bool:
        """What a model says too late for one search is there for the next."""
        results = recall(door, f"怎么修那个登录的 bug {walk.word}")["results"]
        return [item["task"] for item in results] == [f"user authentication {walk.word}x"]

    until(is_found, "a question in other words finds it")
    chapters = [f"# Chapter {n}\n\nThis is what chapter {n} of the {walk.word} book says.\n" for n in range(1, 4)]
    ingest(door, walk.own("book"), "\n".join(chapters))
    (hit, *_) = recall(door, f"what does chapter 2 of the {walk.word} book say")["results"]
    assert hit["part"]["headings"][-1] == "Chapter 2"
    assert "chapter 1" in hit["part"]["before"][0]["content"]
    assert "chapter 3" in hit["part"]["after"][0]["content"]


def r5(walk: Walk) -> None:
    """The same recall is answered from what is kept, until an item changes; hit rates are metrics."""
    door = walk.door(user="asker")
    task = f"cache {walk.word}"

    def found() -> set[str]:
        """Of this walk: a cache of another door, walked before on the same node, is like it a little."""
        return {item["id"] for item in recall(door, task)["results"] if item["task"] == task}

    first = door.save(task=task, content=f"The cache {walk.word} is warm.")
    assert found() == {first}
    before = _kept(walk.url)

    def again() -> bool:
        """Once the item has its vector, nothing changes any more."""
        assert found() == {first}
        return _kept(walk.url) > before

    until(again, "a recall is answered from what is kept")
    second = door.save(task=task, content=f"A second cache {walk.word} is cold.")
    assert found() == {first, second}


def r6(walk: Walk) -> None:
    """Which model does what, by task; each is named in settings, and works without it are told."""
    door = walk.door_of()
    match door:
        case Http():
            told: Any = door.ask("GET", "/api/admin/models")
        case Sdk():
            told = door.ask(door.ledger.models)
        case Command():
            told = door.ask("models", "--no-try")
        case _:
            raise AssertionError(f"no check for {door}")
    works = {each["work"]: each["model"] for each in told["models"]}
    assert {"extract", "summarise", "intent", "rewrite", "embed", "rerank"} <= set(works)
    assert works["extract"]


def _kept(url: str) -> float:
    told = httpx.get(f"{url}/metrics", trust_env=False, timeout=PATIENCE).text
    return float(next(line for line in told.splitlines() if line.startswith("kledger_recalls_kept_total")).split()[1])


def recall(door: Door, message: str, language: str | None = None) -> JsonObject:
    """What is known that answers a message."""
    stated: dict[str, Any] = {} if language is None else {"language": language}
    match door:
        case Http():
            wait = {"min_position": door.after} if door.after else {}
            told: JsonObject = door.ask("POST", "/api/memory/recall", {"message": message, **stated}, **wait)
        case Sdk():
            told = door.ask(door.ledger.recall, message, **stated)
        case Command():
            told = door.ask("recall", message, *[word for name in stated for word in (f"--{name}", stated[name])])
        case Mcp():
            told = door.ask("memory_recall", message=message, **stated)
        case _:
            raise AssertionError(f"no check for {door}")
    return told


def remember(door: Door, **memory: Any) -> None:
    """Save a memory."""
    match door:
        case Http():
            door.ask("POST", "/api/memory", memory)
        case Sdk():
            door.ask(door.ledger.remember, memory.pop("content", None), memory.pop("layer"), **memory)
        case Command():
            words = [memory.pop("content")] if "content" in memory else []
            for name, value in memory.items():
                words += [
                    word for each in ([value] if not isinstance(value, list) else value) for word in _option(name, each)
                ]
            door.ask("memory", "save", *words)
        case Mcp():
            door.ask("memory_save", **memory)


def _option(name: str, value: Any) -> list[str]:
    return [{"steps": "--step"}.get(name, f"--{name}"), str(value)]


def ingest(door: Door, document_id: str, text: str) -> None:
    """Ingest a document. The tools have none: it is done over HTTP for whoever asks by them."""
    match door:
        case Sdk():
            door.ask(door.ledger.documents.ingest, document_id, text=text, content_type="text/markdown")
        case Command():
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / f"{document_id}.md"
                file.write_text(text, "utf-8")
                door.ask("ingest", str(file))
        case _:
            http = door if isinstance(door, Http) else Http(door.url, door.who, door.also)
            stated = {"id": document_id, "title": document_id, "text": text, "content_type": "text/markdown"}
            http.ask("POST", "/api/documents", stated)
            door.after = max(door.after, http.after)
