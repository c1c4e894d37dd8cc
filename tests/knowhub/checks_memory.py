"""What rows M3 to M6 of the mission say, asked of one door."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from ledger.event import JsonObject
from tests.journeys.running_node import until
from tests.knowhub.doors import Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.walking import Walk
from tests.memory.source_004 import EPISODIC, PROCEDURAL, SEMANTIC

CONTEXT = EPISODIC["context"]
STATED: dict[str, JsonObject] = {
    "semantic": {name: SEMANTIC[name] for name in ("content", "category", "tags")} | {
        "related": SEMANTIC["related_memories"]
    },
    "episodic": {name: CONTEXT[name] for name in ("participants", "outcome", "artifacts")} | {
        "event": EPISODIC["event"], "importance": EPISODIC["importance"], "session": CONTEXT["session_id"],
        "happened_at": EPISODIC["timestamp"],
    },
    "procedural": {name: PROCEDURAL[name] for name in ("name", "trigger", "steps")},
}  # fmt: skip
"""The source's memories, by our names."""


def m3(walk: Walk) -> None:
    """A short memory is promoted after three recalls, or at once by a confirmation of somebody who reads it."""
    owner, stranger = walk.door(user="owner"), walk.door(user="stranger")
    recalled = remember(owner, "short", kind="preference", content=f"prefers {walk.word} in the morning")
    assert owner.one(recalled)["memory"] == {"layer": "short", "kind": "preference", "lifetime": 7 * 86_400}

    def found() -> bool:
        return recalled in [item["id"] for item in owner.search(walk.word, min_score=1)]

    for _ in range(3):
        until(found, "the memory is found")
    until(lambda: layer(owner, recalled) == "semantic", "the node promotes it")
    confirmed = remember(owner, "short", kind="mood", content=f"calm {walk.own('today')}")
    with pytest.raises(Refused, match="unknown_knowledge"):
        confirm(stranger, confirmed)
    assert layer(owner, confirmed) == "short"
    assert confirm(owner, confirmed)["layer"] == "semantic"
    assert layer(owner, confirmed) == "semantic"


def m4(walk: Walk) -> None:
    """A memory of each layer is kept with the fields of the layer; those of another are refused."""
    owner = walk.door(user="owner")
    for name, stated in STATED.items():
        kept = owner.one(remember(owner, name, **stated))
        expected = {field: value for field, value in stated.items() if field != "content"}
        assert kept["memory"] == {"layer": name, **expected}
    with pytest.raises(Refused, match="invalid_payload"):
        remember(owner, "semantic", content="c", trigger="when asked")


def m5(walk: Walk) -> None:
    """What a project shares waits for a coordinator; a later version is in force; all in the project read it."""
    project = walk.own("project")
    creator, lead = walk.door(user="creator", project="project"), walk.door(agent="lead", project="project")
    reader, stranger = walk.door(agent="reader", project="project"), walk.door(agent="reader", project="other")
    operator = Http(walk.url)
    operator.ask("POST", f"/api/projects/{project}/coordinators", {"entity": f"agent:{walk.own('lead')}"})
    shared = {"kind": "adr", "scopes": [f"project:{project}"]}

    def finds(door: Door, item_id: str) -> bool:
        return item_id in [item["id"] for item in door.search(walk.word, min_score=1)]

    first = remember(creator, "semantic", content=f"PostgreSQL {walk.word}", **shared)
    assert not finds(reader, first)
    with pytest.raises(Refused, match="not_owner"):
        decide(creator, first, "approve")
    with pytest.raises(Refused, match="unknown_knowledge"):
        decide(stranger, first, "reject")
    assert decide(lead, first, "approve")["status"] == "active"
    until(lambda: finds(reader, first), "the project reads it")
    assert not finds(stranger, first)
    later = remember(reader, "semantic", content=f"PostgreSQL 18 {walk.word}", supersedes=first, **shared)
    assert decide(lead, later, "approve")["superseded"] == first
    until(lambda: finds(creator, later) and not finds(creator, first), "the later version is in force")
    declined = remember(creator, "semantic", content=f"MySQL {walk.word}", **shared)
    assert decide(lead, declined, "reject", reason="we have one")["status"] == "rejected"
    assert not finds(reader, declined)


def m6(walk: Walk) -> None:
    """The health of the memories that somebody sees, and of no others."""
    owner, stranger = walk.door(user="owner"), walk.door(user="stranger")
    one = remember(owner, "semantic", content=f"one {walk.word}", confidence=0.9)
    two = remember(owner, "episodic", event=f"two {walk.word}", confidence=0.7)
    assert owner.one(one)["id"] != owner.one(two)["id"], "the view has both now"
    numbers = health(owner)
    assert (numbers["total"], numbers["by_layer"]["semantic"], numbers["by_layer"]["episodic"]) == (2, 1, 1)
    assert (numbers["mean_confidence"], numbers["never_recalled"]) == (pytest.approx(0.8), 2)
    assert (numbers["expired"], numbers["conflicting"], numbers["promoted"]) == (0, 0, 0)
    assert health(stranger)["total"] == 0


def layer(door: Door, item_id: str) -> Any:
    return door.one(item_id)["memory"]["layer"]


def remember(door: Door, layer: Any, **stated: Any) -> str:
    """The id of a new memory."""
    match door:
        case Http():
            return str(door.ask("POST", "/api/memory", {"layer": layer, **stated})["id"])
        case Sdk():
            content = stated.pop("content", None)
            return str(door.ask(door.ledger.remember, content, layer, **stated)["id"])
        case Command():
            return str(door.ask("memory", "save", *_words(layer, stated))["id"])
        case Mcp():
            return str(door.ask("memory_save", layer=layer, **stated)["id"])
        case _:
            raise AssertionError(door)


_ONE_BY_ONE = {
    "participants": "participant",
    "artifacts": "artifact",
    "steps": "step",
    "tags": "tag",
    "scopes": "scope",
}


def _words(layer: str, stated: JsonObject) -> list[str]:
    words = [stated["content"]] if "content" in stated else []
    for name, value in stated.items():
        option = f"--{_ONE_BY_ONE.get(name, name).replace('_', '-')}"
        if name != "content":
            words += [word for each in (value if isinstance(value, list) else [value]) for word in (option, str(each))]
    return [*words, "--layer", layer]


def confirm(door: Door, item_id: str) -> JsonObject:
    """What a confirmation answers."""
    answer: JsonObject
    match door:
        case Http():
            answer = door.ask("POST", f"/api/memory/{item_id}/confirm", {})
        case Sdk():
            answer = door.ask(door.ledger.confirm, item_id)
        case Command():
            answer = door.ask("memory", "confirm", item_id)
        case Mcp():
            answer = door.ask("memory_confirm", memory_id=item_id)
        case _:
            raise AssertionError(door)
    return answer


def decide(door: Door, item_id: str, decision: Literal["approve", "reject"], reason: str = "agreed") -> JsonObject:
    """What a decision on a proposal answers."""
    answer: JsonObject
    match door:
        case Http():
            answer = door.ask("POST", f"/api/memory/{item_id}/{decision}", {"reason": reason})
        case Sdk():
            answer = door.ask(
                door.ledger.approve if decision == "approve" else door.ledger.reject, item_id, reason=reason
            )
        case Command():
            answer = door.ask("memory", decision, item_id, "--reason", reason)
        case Mcp():
            answer = door.ask("memory_review", memory_id=item_id, decision=decision, reason=reason)
        case _:
            raise AssertionError(door)
    return answer


def health(door: Door) -> JsonObject:
    """The numbers."""
    answer: JsonObject
    match door:
        case Http():
            answer = door.ask("GET", "/api/memory/health")
        case Sdk():
            answer = door.ask(door.ledger.memory_health)
        case Command():
            answer = door.ask("memory", "health")
        case Mcp():
            answer = door.ask("memory_health")
        case _:
            raise AssertionError(door)
    return answer
