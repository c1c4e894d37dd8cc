"""What do the commands about sharing send, print, and exit with?"""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from producers.access.tokens import read_records, tokens_file
from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode

SHARED = {"id": "k-1", "position": 8, "event_id": "e-2"}
SINCE = {
    "position": 1204,
    "version": 2,
    "change": "shared",
    "event_id": "e-2",
    "by": "user:ann",
    "time": "2026-03-05T12:00:00.123456Z",
}
WHY = {
    "id": "k-1",
    "visibility": "shared",
    "because": [{"kind": "acl", "entity": "department:财务", "permission": "read", "since": SINCE}],
    "recalled": True,
    "also": ["user:ann"],
    "may_change": {"owner": "user:ann", "writers": ["user:bob"], "coordinators": [], "you": None},
    "position": 1300,
}


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_share_states_the_whole_acl_and_a_save_may_have_one(node: ScriptedNode) -> None:
    node.says("PUT /api/knowledge/k-1/acl", SHARED)
    node.says(
        "POST /api/knowledge", {"id": "k-2", "position": 3, "version": 2, "event_id": "e", "duplicate": False}, 201
    )
    who = ["--reader", "team:web", "--writer", "user:bob", "--reader", "user:bob"]
    acl = [{"entity": "user:bob", "permission": "read_write"}, {"entity": "team:web", "permission": "read"}]
    ran = kledger("share", "k-1", *who, "--user", "ann")
    told = "shared k-1 with user:bob (may revise), team:web, nobody else by name, at position 8"
    assert (ran.exit_code, " ".join(ran.stdout.split())) == (0, told)
    assert kledger("save", "--types", "tool", "--task", "t", "--content", "c", *who).exit_code == 0
    assert kledger("share", "k-1", "--nobody").stdout.strip() == "shared k-1 with nobody, at position 8"
    assert [asked.body.get("acl") for asked in node.told] == [acl, acl, []]
    assert [kledger("share", "k-1", *wrong).exit_code for wrong in ([], ["--nobody", *who])] == [2, 2]


def test_what_waits_for_a_coordinator_by_a_command_is_told(node: ScriptedNode) -> None:
    kept = {"id": "k-1", "position": 8, "version": 3, "to_version": 1, "event_id": "e", "duplicate": False}
    commands: dict[str, tuple[str, ...]] = {
        "PUT /api/knowledge/k-1/acl": ("share", "k-1", "--reader", "project:apollo"),
        "POST /api/knowledge/k-1/revert": ("revert", "k-1", "1"),
        "POST /api/knowledge": ("save", "--types", "tool", "--content", "c"),
        "POST /api/knowledge/k-1/restore": ("restore", "k-1"),
        "PUT /api/knowledge/k-1": ("revise", "k-1", "--content", "c"),
    }
    for request, command in commands.items():
        for status in ("proposed", "active"):
            node.says(request, kept | {"status": status})
        for waits in (True, False):
            ran = kledger(*command)
            assert (ran.exit_code, "waits for a coordinator (proposed)" in ran.stdout) == (0, waits), command


def test_why_visible_shows_each_reason_with_its_event(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1/why", WHY)
    ran = kledger("why-visible", "k-1", "--user", "ann", "--entity", "department:财务,x", "--entity", "team:web")
    for part in (
        "acl (read)",
        "department:财务",
        "shared by user:ann, 2026-03-05T12:00:00Z",
        "1,204",
        "user:bob",
        "reader",
    ):
        assert part in ran.stdout
    assert node.asked[0].headers["x-ledger-scope"] == "department:%E8%B4%A2%E5%8A%A1%2Cx,team:web"
    assert json.loads(kledger("why-visible", "k-1", "--json").stdout) == WHY


def test_types_of_scopes_are_registered_and_listed_by_the_operator(node: ScriptedNode) -> None:
    node.says("POST /api/scope_types", {"type": "guild", "priority": 2.5, "position": 9, "event_id": "e"}, 201)
    types = [
        {"type": "team", "priority": 3.0, "built_in": True, "position": None},
        {"type": "guild", "priority": 2.5, "built_in": False, "position": 9},
    ]
    node.says("GET /api/scope_types", {"scope_types": types, "position": 9})
    ran = kledger("scope-type", "add", "guild", "--priority", "2.5")
    assert ran.stdout.strip() == "guild has priority 2.5, at position 9"
    assert node.told[0].body == {"type": "guild", "priority": 2.5}
    told = kledger("scope-type", "list").stdout
    assert [line.split()[:2] for line in told.splitlines() if "built in" in line or "guild" in line] == [
        ["team", "3"],
        ["guild", "2.5"],
    ]


def test_a_token_is_bound_to_entities_of_any_type(tmp_path: Path) -> None:
    ran = kledger(
        "token", "create", "--new", "--team", "a", "--entity", "team:b", "--entity", "guild:x", "--data", str(tmp_path)
    )
    assert ran.exit_code == 0
    (record,) = read_records(tokens_file(tmp_path))
    assert record.bound == {"team": ("a", "b"), "guild": ("x",)}
    assert kledger("token", "create", "--new", "--entity", "guild", "--data", str(tmp_path)).exit_code == 1
