"""An update with several fields keeps all that it can, and every interface says of each field what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.event import JsonObject
from tests.knowhub.doors import NAMES, Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.walking import Walk

JUDGED = ("add_helpful_case", "update_score")
SAID: JsonObject = {"add_helpful_case": {"task": "build", "outcome": "fixed"}, "update_score": 5}
REWRITE = "make it shorter"


def updated(door: Door, item_id: str, **said: Any) -> JsonObject:
    """What the node answers to an update with these fields."""
    match door:
        case Http():
            told: Any = door.ask("PUT", f"/api/knowledge/{item_id}", said)
        case Sdk():
            told = door.ask(door.ledger.tools.knowledge_update, item_id, **said)
        case Command():
            case = said["add_helpful_case"]
            words = [word for name in case for word in (f"--{name}", case[name])]
            told = door.ask("rate", item_id, "--helpful", *words, "--score", str(said["update_score"]))
        case _:
            assert isinstance(door, Mcp)
            told = door.ask("knowledge_update", knowledge_id=item_id, **said)
    return dict(told)


@pytest.mark.parametrize("walk", NAMES, indirect=True)
def test_every_field_that_is_kept_is_told_with_its_position(walk: Walk) -> None:
    door = walk.door(user="ann")
    item_id = door.save(content=walk.word)
    told = updated(door, item_id, **SAID)
    at = {"add_helpful_case": "knowledge.rated", "update_score": "knowledge.scored"}
    by_event = {event["type"]: event["position"] for event in told["events"]}
    assert told["fields"] == {name: {"kept": True, "position": by_event[at[name]]} for name in JUDGED}
    assert told["position"] == max(by_event.values())
    kept = Http(walk.url, door.who, after=told["position"]).one(item_id)["eval"]
    assert (kept["score"], kept["helpful"]) == (5, 2)


@pytest.mark.parametrize("state", ["active", "retired"])
@pytest.mark.parametrize("walk", ["http", "sdk", "mcp"], indirect=True)
def test_a_verdict_is_kept_beside_a_field_that_is_not(walk: Walk, state: str) -> None:
    owner, reader = Http(walk.url, {"user": walk.own("ann")}), walk.door(user="bob")
    item_id = owner.save(content=walk.word, scopes=["public"])
    if state == "retired":
        owner.ask("DELETE", f"/api/knowledge/{item_id}")
    reader.after = owner.after
    told = updated(reader, item_id, **SAID, evolve_feedback=REWRITE)
    assert {name for name, each in told["fields"].items() if each["kept"]} == set(JUDGED)
    assert not told["fields"]["evolve_feedback"]["kept"]
    assert told["fields"]["evolve_feedback"]["error"]["code"] == "not_available"
    kept = Http(walk.url, owner.who, after=told["position"]).one(item_id)
    assert (kept["eval"]["score"], kept["eval"]["helpful"], kept["status"]) == (5, 2, state)
    assert kept["content"] == walk.word


@pytest.mark.parametrize("walk", ["http", "sdk", "mcp"], indirect=True)
def test_what_is_refused_alone_is_an_error_and_no_answer(walk: Walk) -> None:
    door = walk.door(user="ann")
    item_id = door.save(content=walk.word)
    with pytest.raises(Refused, match="not_available"):
        updated(door, item_id, evolve_feedback=REWRITE)
    assert door.one(item_id)["version"] == 1


@pytest.mark.parametrize("walk", ["http", "sdk", "command"], indirect=True)
def test_fields_that_are_stated_anew_are_told_one_by_one(walk: Walk) -> None:
    door = walk.door(user="ann")
    item_id = door.save(content=walk.word)
    match door:
        case Http():
            told: Any = door.ask("PUT", f"/api/knowledge/{item_id}", {"content": "new", "task": "another"})
        case Sdk():
            told = door.ask(door.ledger.revise, item_id, content="new", task="another")
        case _:
            assert isinstance(door, Command)
            told = door.ask("revise", item_id, "--content", "new", "--task", "another")
    at = {"kept": True, "position": told["events"][0]["position"]}
    assert told["fields"] == {"content": at, "task": at}
