"""A case that says when or where it happened counts once however often it is stated, through every interface."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from ledger.event import JsonObject
from tests.journeys.running_node import RunningNode
from tests.knowhub.doors import NAMES, Command, Door, Http, Mcp, Name, Sdk
from tests.knowhub.walking import Walk
from tests.openai_chat import ChatEndpoint

WORDS = {"task": "任务描述", "outcome": "成功"}
WHERE: dict[str, dict[str, str]] = {
    "timestamp": {"timestamp": "2026-03-05T12:00:00Z"},
    "trace": {"trace_id": "trace-xxx"},
}


@pytest.fixture
def open_doors() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def judged(door: Door, item_id: str, **case: str) -> None:
    """State a case, as the interface has it: a command says the trace of what it does."""
    if isinstance(door, Command):
        trace = case.pop("trace_id", None) or case.pop("timestamp", None)
        case |= {"trace": trace} if trace else {}
    door.judge(item_id, "helpful", **case)


def helpful(door: Door, item_id: str) -> int:
    return int(door.one(item_id)["eval"]["helpful"])


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", NAMES)
def test_the_same_case_counts_once(shared_node: RunningNode, open_doors: ExitStack, name: Name, where: str) -> None:
    walk = Walk(shared_node.url, name, open_doors, ChatEndpoint())
    door = walk.door(agent="judge")
    item_id, other = door.save(), door.save()
    case = {**WORDS, **WHERE[where]}
    for _ in range(3):
        judged(door, item_id, **case)
    assert helpful(door, item_id) == 2
    judged(door, item_id, **{**case, "outcome": "又成功了"})
    assert helpful(door, item_id) == 3, "other words are another case"
    judged(door, other, **case)
    assert helpful(door, other) == 2, "another item is another case"
    for _ in range(2):
        judged(door, item_id, **WORDS)
    assert helpful(door, item_id) == 5, "what says neither when nor where may happen again"


@pytest.mark.parametrize("name", ["http", "sdk", "mcp"])
def test_the_same_case_counts_once_in_a_batch(shared_node: RunningNode, open_doors: ExitStack, name: Name) -> None:
    door = Walk(shared_node.url, name, open_doors, ChatEndpoint()).door(agent="judge")
    item_id = door.save()
    case = {**WORDS, **WHERE["timestamp"]}
    verdicts: list[JsonObject] = [{"knowledge_id": item_id, "is_helpful": True, "case": case}] * 2
    judged(door, item_id, **case)
    for _ in range(2):
        match door:
            case Http():
                told = door.ask("POST", "/api/knowledge/batch_update", {"feedback_list": verdicts})
            case Sdk():
                told = door.ask(door.ledger.rate_many, verdicts)
            case _:
                assert isinstance(door, Mcp)
                told = door.ask("knowledge_batch_update", feedback_list=verdicts)
        assert (told["updated"], told["refused"]) == (2, [])
    assert helpful(door, item_id) == 2


def test_a_case_that_was_stated_before_does_not_keep_back_what_is_new_beside_it(shared_node: RunningNode) -> None:
    door = Http(shared_node.url, {"agent": f"judge-{uuid4().hex[:8]}"})
    item_id = door.save()
    case = {**WORDS, **WHERE["timestamp"]}
    first = door.ask("PUT", f"/api/knowledge/{item_id}", {"add_helpful_case": case})
    assert helpful(door, item_id) == 2
    second = door.ask("PUT", f"/api/knowledge/{item_id}", {"add_helpful_case": case, "update_score": 5})
    assert first["events"][0] in second["events"], "the answer names the event that has it"
    judged_now = door.one(item_id)["eval"]
    assert (judged_now["score"], judged_now["helpful"]) == (5, 2)


def test_another_actor_states_a_case_of_their_own(shared_node: RunningNode) -> None:
    word = uuid4().hex[:8]
    both = [Http(shared_node.url, {"user": f"{name}-{word}", "team": word}) for name in ("ann", "bob")]
    item_id = both[0].save(scopes=[f"team:{word}"])
    for door in both:
        door.after = both[0].after
        door.judge(item_id, "helpful", **WORDS, **WHERE["timestamp"])
    assert helpful(both[1], item_id) == 3
