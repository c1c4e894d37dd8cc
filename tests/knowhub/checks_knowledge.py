"""What rows K1 to K11 of the mission say, asked of one door."""

from __future__ import annotations

import inspect
import re

import pytest

from ledger.event import JsonObject
from projections.views.knowledge.evidence import confidence
from tests.knowhub import source
from tests.knowhub.checks_models import routing
from tests.knowhub.doors import Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.walking import Walk

ID = re.compile(r"knowledge-\d{8}-[a-z0-9]+")


def k1(walk: Walk) -> None:
    """Every field is kept; a new item begins at helpful 1, confidence 0.5, score 3."""
    door = walk.door(agent="research_agent", org="cybertogether")
    stated: JsonObject = {
        "types": ["tool", "strategy"],
        "tags": {"domain": "coding_style"},
        "scopes": [f"org:{walk.own('cybertogether')}", f"agent:{walk.own('research_agent')}"],
        "owner": f"agent:{walk.own('research_agent')}",
        "resource_ids": ["code/selenium/login"],
        "source": {"name": "资源名称", "category": "exp", "urls": ["https://example.com"], "message_id": "msg-1"},
        "score": 4,
    }
    item = door.one(door.save(task=f"任务 {walk.word}", content=f"内容 {walk.word}", **stated))
    assert ID.fullmatch(item["id"])
    assert set(item) >= source.WHOLE_ITEM | {"visibility"}
    assert (item["task"], item["content"]) == (f"任务 {walk.word}", f"内容 {walk.word}")
    for name in ("types", "tags", "scopes", "owner", "resource_ids"):
        assert item[name] == stated[name], name
    assert item["eval"].items() >= {"score": 4, "helpful": 1, "harmful": 0, "confidence": 0.5}.items()
    kept = {"name", "category", "urls"} | (set() if isinstance(door, Command) else {"message_id"})
    assert {name: item["source"][name] for name in kept} == {name: stated["source"][name] for name in kept}
    assert item["created_at"] == item["updated_at"]
    assert door.one(door.save())["eval"]["score"] == 3


def k2(walk: Walk) -> None:
    """The six types and one of a deployment's own are taken, several an item, and filter what is found."""
    door = walk.door(agent="typist")
    kinds = ["user_profile", "strategy", "tool", "usecase", "definition", "plan", "recipe"]
    saved = {kind: door.save(types=[kind, "typed"]) for kind in kinds}
    own = [f"agent:{walk.own('typist')}"]
    for kind in kinds:
        assert [item["id"] for item in door.list(types=[kind], scopes=own)] == [saved[kind]]
    assert {item["id"] for item in door.list(types=["typed"], scopes=own)} == set(saved.values())
    with pytest.raises(Refused, match="invalid_payload"):
        door.save(types=["No Type"])


def k3(walk: Walk) -> None:
    """A case counts, once for each time it is said, stands in the history, and moves the confidence."""
    door = walk.door(agent="judge")
    item_id = door.save()
    door.judge(item_id, "helpful", task="任务描述", outcome="成功")
    door.judge(item_id, "harmful", task="任务描述", outcome="失败", reason="原因")
    door.score(item_id, 5)
    judged = door.one(item_id)["eval"]
    assert (judged["score"], judged["helpful"], judged["harmful"]) == (5, 2, 1)
    assert judged["confidence"] == pytest.approx(confidence(0.5, 1, 1))
    if not isinstance(door, Mcp):  # its list has no histories
        (helpful,), (harmful,) = judged["helpful_history"], judged["harmful_history"]
        assert helpful.items() >= {"task": "任务描述", "outcome": "成功"}.items()
        assert harmful.items() >= {"outcome": "失败", "reason": "原因"}.items()
    match door:
        case Http():
            rated = door.ask("POST", "/api/knowledge/batch_update", source.verdicts(item_id))
        case Sdk():
            rated = door.ask(door.ledger.rate_many, source.verdicts(item_id)["feedback_list"])
        case Mcp():
            rated = door.ask("knowledge_batch_update", **source.verdicts(item_id))
        case _:
            return
    assert (rated["updated"], rated["refused"]) == (1, [])
    if isinstance(door, Http):
        assert door.one(item_id)["eval"]["helpful"] == 3


def k8(walk: Walk) -> None:
    """At most top_k; nothing below min_score or of negative quality; what is most personal comes first."""
    door = walk.door(user="ranker", project="harbor", org="lantern")
    said = {"task": f"同一件事 {walk.word}", "content": f"同样的内容 {walk.word}"}
    in_order = [
        door.save(**said, scopes=[f"{kind}:{walk.own(name)}"])
        for kind, name in (("user", "ranker"), ("project", "harbor"), ("org", "lantern"))
    ]
    poor = door.save(**said, score=2)
    harmful = door.save(**said)
    for _ in range(3):
        door.judge(harmful, "harmful", reason="it broke")
    found = door.search(walk.word, top_k=10)
    assert [item["id"] for item in found if item["id"] in in_order] == in_order
    assert not {poor, harmful} & {item["id"] for item in found}
    for item in found:
        judged = item["eval"]
        assert item["quality_score"] == judged["score"] + judged["helpful"] - 2 * judged["harmful"] >= 0
    assert poor in [item["id"] for item in door.search(walk.word, top_k=10, min_score=2)]
    assert len(door.search(walk.word, top_k=2)) == 2
    if not isinstance(door, Mcp):  # its tool has the source's arguments and no other
        routing(walk)


def k10(walk: Walk) -> None:
    """Every endpoint that the source names is there, and get, delete, restore and history beside them."""
    door = walk.door(agent="caller")
    assert isinstance(door, Http)
    paths = door.ask("GET", "/openapi.json")["paths"]
    for method, path in (
        ("get", "/api/knowledge/search"),
        ("post", "/api/knowledge"),
        ("put", "/api/knowledge/{item_id}"),
        ("post", "/api/knowledge/batch_update"),
        ("get", "/api/knowledge"),
        ("post", "/api/knowledge/slim"),
        ("get", "/api/knowledge/{item_id}"),
        ("delete", "/api/knowledge/{item_id}"),
        ("post", "/api/knowledge/{item_id}/restore"),
        ("get", "/api/knowledge/{item_id}/history"),
    ):
        assert method in paths[path], f"{method} {path}"
    item_id = door.save()
    door.ask("DELETE", f"/api/knowledge/{item_id}")
    assert item_id not in [item["id"] for item in door.list()]
    door.ask("POST", f"/api/knowledge/{item_id}/restore")
    assert item_id in [item["id"] for item in door.list()]
    versions = door.ask("GET", f"/api/knowledge/{item_id}/history")["versions"]
    assert [version["change"] for version in versions] == ["saved", "retired", "restored"]


def k11(walk: Walk) -> None:
    """All tools are there under the source's names."""
    door: Door = walk.door(agent="toolsmith")
    names = {*source.TOOLS, *source.NAMED_ONLY, *source.OF_ITEMS, *source.OF_PROFILES, *source.OF_SESSIONS}
    if isinstance(door, Sdk):
        assert {name for name, _ in inspect.getmembers(type(door.ledger.tools)) if name in names} == names
        return
    assert isinstance(door, Mcp)
    for name in names:
        with pytest.raises(Refused, match="invalid_payload"):
            door.ask(name, there_is_no_such_argument=True)
