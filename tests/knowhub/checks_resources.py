"""What rows X1, X3 and X4 of the mission say, asked of one door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest

from ledger.event import JsonObject
from tests.knowhub.doors import Command, Door, Http, Mcp, Refused, Sdk
from tests.knowhub.source import RESOURCES
from tests.knowhub.walking import Walk

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")


def x1(walk: Walk) -> None:
    """A resource is kept field by field, under an id that reads like a path."""
    door = walk.door(agent="keeper")
    for resource in RESOURCES.values():
        stated = {**resource, "id": f"{walk.word}/{resource['id']}", "metadata": valid(resource["metadata"])}
        keep(walk, door, stated)
        assert read(door, stated["id"]).items() >= stated.items()
    with pytest.raises(Refused, match="unknown_resource"):
        read(door, f"{walk.word}/never/saved")


def x3(walk: Walk) -> None:
    """The secret is its owner's and theirs with whom it is shared; whoever sees the rest sees no secret."""
    owner = walk.door(agent="owner")
    shared, public = f"user:{walk.own('friend')}", {"scopes": ["public"]}
    stated = {**RESOURCES["credentials/website_a"], "id": f"{walk.word}/account", **public, "shared_with": [shared]}
    keep(walk, owner, stated)
    assert read(owner, stated["id"])["secure_body"] == stated["secure_body"]
    assert read(walk.door(user="friend"), stated["id"])["secure_body"] == stated["secure_body"]
    seen = read(walk.door(user="stranger"), stated["id"])
    assert (seen["body"], seen["secure_body"]) == (stated["body"], None)


def x4(walk: Walk) -> None:
    """What has expired is marked so, and its secret is served to nobody."""
    door = walk.door(agent="keeper")
    stated = {**RESOURCES["cookies/website_a"], "id": f"{walk.word}/cookie"}
    keep(walk, door, stated)
    told = read(door, stated["id"])
    assert (told["expired"], told["valid"], told["secure_body"]) == (True, False, None)
    assert told["body"] == stated["body"]


def valid(metadata: JsonObject) -> JsonObject:
    """The source's cookie is of a day that is past."""
    return {name: TOMORROW if name == "expires_at" else value for name, value in metadata.items()}


def keep(walk: Walk, door: Door, stated: JsonObject) -> None:
    """Save a resource."""
    rest: dict[str, Any] = {name: value for name, value in stated.items() if name not in ("id", "title")}
    match door:
        case Http():
            door.ask("POST", "/api/resource", stated)
        case Sdk():
            door.ask(door.ledger.resources.save, stated["id"], stated["title"], **rest)
        case Mcp():
            door.ask("resource_save", resource_id=stated["id"], title=stated["title"], **rest)
        case _:
            assert isinstance(door, Command)
            secret = Path(walk.open.enter_context(TemporaryDirectory())) / "secret"
            secret.write_text(rest.get("secure_body", ""), "utf-8")
            words = ["--title", stated["title"], "--body", rest["body"], "--type", rest["content_type"]]
            words += [word for name, value in rest["metadata"].items() for word in ("--meta", f"{name}={value}")]
            words += ["--secure-file", str(secret)] if "secure_body" in rest else []
            words += ["--scopes", ",".join(rest["scopes"])] if "scopes" in rest else []
            words += ["--share-with", ",".join(rest["shared_with"])] if "shared_with" in rest else []
            door.ask("resource", "save", stated["id"], *words)
    assert read(door, stated["id"]), "the view has it now"


def read(door: Door, resource_id: str) -> JsonObject:
    """A resource, with its secret where it may be read."""
    match door:
        case Http():
            told: Any = door.ask("GET", f"/api/resource/{quote(resource_id, safe='')}")
        case Sdk():
            told = door.ask(door.ledger.resources.get, resource_id)
        case Mcp():
            told = door.ask("resource_get", resource_id=resource_id)
        case _:
            assert isinstance(door, Command)
            told = door.ask("resource", "show", resource_id, "--reveal")
    return dict(told)
