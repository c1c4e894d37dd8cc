"""What rows P1 and P2 of the mission say, asked of one door."""

from __future__ import annotations

import json
from typing import Any

import pytest

from projections.views.profiles.content import CONTENTS
from tests.knowhub.doors import Command, Http, Refused, Sdk
from tests.knowhub.walking import Walk


def p1(walk: Walk) -> None:
    """Registration gives a user both memories, complete, with the source's fields; each entry has its meta."""
    ask = Memories(walk)
    both = ask("register")
    assert {name.removesuffix("_memory") for name in both} == {"user", "work"}
    for name, content in CONTENTS.items():
        assert both[f"{name}_memory"] == content().model_dump(mode="json")
    told = ask("patch", "user", {"people": [{"name": "Mei", "meta": {"source": "chat", "confidence": 0.9}}]})
    assert told["people"][0]["meta"].items() >= {"source": "chat", "confidence": 0.9}.items()


def p2(walk: Walk) -> None:
    """A memory is read, stated anew, patched (null removes), disabled, and made active again by a PUT."""
    ask = Memories(walk)
    ask("register")
    stated = ask("put", "work", {"current_projects": [{"name": "Harbor"}]})
    assert [project["name"] for project in stated["current_projects"]] == ["Harbor"]
    assert ask("patch", "work", {"current_projects": None})["current_projects"] == []
    ask("disable", "work")
    assert ask("get", "work") is None
    assert ask("get", "user") is not None
    ask("put", "work", {})
    assert ask("get", "work") is not None
    with pytest.raises(Refused, match="invalid_payload"):
        ask("put", "user", {"no_such_field": 1})


class Memories:
    """The memories of one user, by what a door calls each act."""

    def __init__(self, walk: Walk) -> None:
        self.door = walk.door(user="ann")

    def __call__(self, act: str, *given: Any) -> Any:
        match self.door:
            case Http() as door:
                name = given[0] if given else ""
                path = f"/api/v1/memories/{name}".rstrip("/")
                method = {"register": "POST", "disable": "DELETE"}.get(act, act.upper())
                return door.ask(method, path, {"content": given[1]} if len(given) > 1 else None)
            case Sdk() as door:
                return door.ask(getattr(door.ledger.profiles, act), *given)
            case Command() as door:
                words = [*given[:1], *map(json.dumps, given[1:])]
                return door.ask("profile", {"get": "show", "put": "set"}.get(act, act), *words)
        raise AssertionError(f"{self.door} has no memories")
