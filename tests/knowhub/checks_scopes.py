"""What rows S1 to S5 of the mission say, and X2, asked of one door."""

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


def s4(walk: Walk) -> None:
    """A type that the operator registers is a scope like the others, at the place that its priority gives it."""
    kind = walk.own("d").replace("-", "_")
    everybody = {"user": walk.own("clerk"), "team": walk.own("web"), "org": walk.own("lantern")}
    door, finance = walk.door_of(**everybody), f"{kind}:财务"
    with pytest.raises(Refused, match="illegal_scope"):
        door.save(scopes=[finance])
    if not isinstance(door, Command):  # this command has no --user: it is the operator's alone
        with pytest.raises(Refused, match="not_owner"):
            add_type(door, kind, 2.5)
    add_type(walk.door_of(), kind, 2.5)
    said = {"task": f"同一件事 {walk.word}", "content": f"同样的内容 {walk.word}"}
    clerk = walk.door_of([finance], **everybody)
    own = f"user:{everybody['user']}"
    in_order = [
        clerk.save(**said, owner=own, scopes=[scope])
        for scope in (f"team:{everybody['team']}", finance, f"org:{everybody['org']}")
    ]
    assert clerk.one(in_order[-1]), "the view has them now"
    assert [item["id"] for item in clerk.search(walk.word, top_k=50) if item["id"] in in_order] == in_order
    only = walk.door_of([finance])
    assert [item["id"] for item in only.list() if item["id"] in in_order] == [in_order[1]]
    assert in_order[1] not in [item["id"] for item in walk.door(user="stranger").list()]


def s5(walk: Walk) -> None:
    """Whom the ACL names reads the item beside those in its scopes, and revises it where it says read_write."""
    owner, reader, writer = walk.door(user="owner"), walk.door(team="reader"), walk.door(user="writer")
    stranger = walk.door(user="stranger")
    item_id = owner.save(content=f"共享 {walk.word}")
    entries = {f"team:{walk.own('reader')}": "read", f"user:{walk.own('writer')}": "read_write"}
    share(owner, item_id, entries)
    assert owner.search(walk.word, top_k=50), "every view has it now"
    acl = owner.one(item_id)["acl"]
    assert {entry["entity"]: entry["permission"] for entry in acl} == entries
    for door in (reader, writer):
        assert item_id in [item["id"] for item in door.list()]
        assert item_id in [item["id"] for item in door.search(walk.word, top_k=50)]
        assert door.one(item_id)["owner"] == f"user:{walk.own('owner')}"
        with pytest.raises(Refused, match="not_owner"):
            share(door, item_id, {f"user:{walk.own('stranger')}": "read"})
    with pytest.raises(Refused, match="unknown_knowledge"):
        stranger.one(item_id)
    with pytest.raises(Refused, match="not_owner"):
        change(reader, item_id, "")
    change(writer, item_id, "")
    assert writer.one(item_id)["content"] == "changed"
    share(owner, item_id, {})
    assert not owner.one(item_id).get("acl")
    for door in (reader, writer):
        with pytest.raises(Refused, match="unknown_knowledge"):
            door.one(item_id)


def add_type(door: Door, name: str, priority: float) -> None:
    """Register a type of scope."""
    match door:
        case Http():
            door.ask("POST", "/api/scope_types", {"type": name, "priority": priority})
        case Sdk():
            door.ask(door.ledger.register_scope_type, name, priority)
        case _:
            assert isinstance(door, Command)
            door.ask("scope-type", "add", name, "--priority", str(priority))


def share(door: Door, item_id: str, entries: dict[str, str]) -> None:
    """State the whole ACL of an item."""
    acl = [{"entity": entity, "permission": permission} for entity, permission in entries.items()]
    match door:
        case Http():
            door.ask("PUT", f"/api/knowledge/{item_id}/acl", {"acl": acl})
        case Sdk():
            door.ask(door.ledger.share, item_id, acl)
        case _:
            assert isinstance(door, Command)
            option = {"read": "--reader", "read_write": "--writer"}
            words = [word for entity, permission in entries.items() for word in (option[permission], entity)]
            door.ask("share", item_id, *(words or ["--nobody"]))


def x2(walk: Walk) -> None:
    """An item refers to several resources."""
    door = walk.door(agent="referrer")
    several = ["code/selenium/undetected_login", "credentials/website_a"]
    assert door.one(door.save(resource_ids=several))["resource_ids"] == several
