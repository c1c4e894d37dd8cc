"""What rows S1 to S3 of the mission say, and X2, asked of one door."""

from __future__ import annotations

import pytest

from tests.knowhub.doors import Command, Door, Http, Refused, Sdk
from tests.knowhub.walking import Walk

KINDS = ("user", "agent", "project", "team", "org")


def s1(walk: Walk) -> None:
    """Scopes of every kind and `public`, several an item; each identity sees what is its own."""
    owner = walk.door(agent="writer")
    several = owner.save(scopes=[f"{kind}:{walk.own(kind)}" for kind in KINDS] + [f"agent:{walk.own('writer')}"])
    public = owner.save(scopes=["public"])
    assert owner.one(public), "the view has both now"
    for kind in KINDS:
        seen = {item["id"] for item in walk.door(**{kind: kind}).list()}
        assert several in seen, kind
        assert public in seen, kind
    seen = {item["id"] for item in walk.door(user="somebody-else").list()}
    assert public in seen
    assert several not in seen


def s2(walk: Walk) -> None:
    """Who shares no scope sees nothing, by no way; who sees it and is not the owner changes nothing."""
    owner, stranger = walk.door(user="owner"), walk.door(user="stranger", org="elsewhere")
    hidden = owner.save(content=f"秘密 {walk.word}")
    assert owner.one(hidden), "the view has it now"
    assert hidden not in [item["id"] for item in stranger.list()]
    assert hidden not in [item["id"] for item in stranger.search(walk.word, top_k=50, min_score=1)]
    with pytest.raises(Refused, match="unknown_knowledge"):
        stranger.one(hidden)
    with pytest.raises(Refused, match="unknown_knowledge"):
        stranger.judge(hidden, "harmful", reason="unseen")
    shown = owner.save(scopes=["public"])
    assert owner.one(shown), "the view has it now"
    stranger.judge(shown, "helpful", outcome="read it")
    with pytest.raises(Refused, match="not_owner"):
        change(stranger, shown, f"user:{walk.own('owner')}")
    assert owner.one(shown)["content"] != "changed"


def change(door: Door, item_id: str, owner: str) -> None:
    """Try to change what another's item says; over MCP no tool does, and to save in the owner's name is no way."""
    match door:
        case Http():
            door.ask("PUT", f"/api/knowledge/{item_id}", {"content": "changed"})
        case Sdk():
            door.ask(door.ledger.revise, item_id, content="changed")
        case Command():
            door.ask("revise", item_id, "--content", "changed")
        case _:
            door.save(owner=owner)


def s3(walk: Walk) -> None:
    """The label follows from the scopes."""
    named = {"user": "labeller", "team": "web", "org": "lantern"}
    door = walk.door(**named)
    user, team, org = (f"{kind}:{walk.own(name)}" for kind, name in named.items())
    for scopes, label in (([user], "private"), ([team], "shared"), ([team, org], "org"), ([org, "public"], "public")):
        assert door.one(door.save(scopes=scopes))["visibility"] == label


def x2(walk: Walk) -> None:
    """An item refers to several resources."""
    door = walk.door(agent="referrer")
    several = ["code/selenium/undetected_login", "credentials/website_a"]
    assert door.one(door.save(resource_ids=several))["resource_ids"] == several
