"""Whoever asks is named by a name alone: no door makes `user:user:mei` of `user:mei`, nor one person of two."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import IllegalScope
from kledger.contract.scopes import ENTITY_TYPES, Caller, check_name
from producers.access.book import TokenBook
from producers.access.tokens import create_token, tokens_file
from producers.cli.main import app
from tests.doors.http_door import http_door, refusal
from tests.doors.scripted_node import commanded_node
from tests.mcp.mcp_door import mcp_door

ITEM: dict[str, Any] = {"task": "t", "content": "c", "types": ["tool"]}
NO_NAMES = ["user:mei", "agent:x", "User: mei", "public:mei", "a,b", "a, user:b", "", "  "]
LOOKS_LIKE_MEI = ["mei\u200b", "\ufeffmei", "m\u00adei", "\u202emei", "mei\u2069", "\u200fmei", "m\u2060ei"]
JOSE, IN_PARTS = "jos\u00e9", "jose\u0301"
NAMES = [
    JOSE,
    "\u0645\u06cc\u200c\u062e",
    "mei",
    "mei@example.com",
    "auth0:123",
    "https://id.example/mei",
    "users:mei",
    "梅",
]


@pytest.mark.parametrize("kind", ENTITY_TYPES)
def test_a_name_with_a_type_or_a_comma_is_refused_and_told_what_to_write(kind: str) -> None:
    for name in NO_NAMES:
        with pytest.raises(IllegalScope, match="name"):
            check_name(kind, name)
    with pytest.raises(IllegalScope, match=r"give the name alone: mei$"):
        check_name(kind, f"{kind}:mei")
    assert [check_name(kind, name) for name in NAMES] == NAMES


async def test_no_name_that_looks_like_another_is_another_person() -> None:
    """Both were kept, each as a person of its own: what one had said stayed when the other was forgotten."""
    async with http_door() as door:
        for name in [*LOOKS_LIKE_MEI, IN_PARTS]:
            with pytest.raises(IllegalScope, match="looks like"):
                check_name("user", name)
            answer = await door.post("/api/knowledge", json=ITEM, headers={"X-Ledger-User": quote(name)})
            refusal(answer, 422, "illegal_scope")
        assert await door.head() == 0
        await door.saved({"X-Ledger-User": quote(JOSE)})
        with pytest.raises(IllegalScope, match=JOSE):
            check_name("user", IN_PARTS)


@pytest.mark.parametrize("name", NO_NAMES)
async def test_no_header_makes_another_person_of_an_entity(name: str) -> None:
    async with http_door() as door:
        for kind in ENTITY_TYPES:
            answer = await door.post("/api/knowledge", json=ITEM, headers={f"X-Ledger-{kind}": name})
            refusal(answer, 422, "illegal_scope")
        assert await door.head() == 0


async def test_an_entity_that_was_named_so_before_is_reached_by_naming_it_whole() -> None:
    async with http_door() as door:
        told = await door.saved({}, owner="user:user:mei", scopes=["user:user:mei"])
        await door.saved({}, owner="user:a,b", scopes=["user:a,b"])
        path = f"/api/knowledge/{told['id']}"
        assert (await door.get(path, headers={"X-Ledger-Scope": "user:user:mei"})).status_code == 200
        listed = await door.get("/api/knowledge", headers={"X-Ledger-Scope": "user:a%2Cb"})
        assert listed.json()["count"] == 1
        moved = await door.put(path, json={"owner": "user:mei", "scopes": ["user:mei"]})
        assert moved.status_code == 200
        await door.desk.view.wait_for(moved.json()["position"])
        assert (await door.get(path, headers={"X-Ledger-User": "mei"})).status_code == 200


@pytest.mark.parametrize("name", NO_NAMES)
def test_the_sdk_asks_as_names_alone(name: str) -> None:
    with LedgerClient("http://127.0.0.1:1") as ledger:
        for kind in ENTITY_TYPES:
            with pytest.raises(IllegalScope):
                ledger.acting_as(**{kind: name})


def test_the_command_refuses_it_as_an_option_and_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with commanded_node(monkeypatch) as node:
        for kind in ENTITY_TYPES:
            ran = CliRunner().invoke(app, ["list", f"--{kind}", f"{kind}:mei"])
            assert (ran.exit_code, "give the name alone: mei" in ran.stderr) == (1, True)
            ran = CliRunner(env={f"KLEDGER_{kind.upper()}": f"{kind}:mei"}).invoke(app, ["list"])
            assert (ran.exit_code, "give the name alone: mei" in ran.stderr) == (1, True)
        ran = CliRunner().invoke(app, ["list", "--user", "ann,bob"])
        assert "with --entity" in ran.stderr
        assert CliRunner().invoke(app, ["mcp", "--user", "user:mei"]).exit_code == 1
        assert node.asked == []


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_an_empty_name_makes_nobody_the_operator_at_a_command(monkeypatch: pytest.MonkeyPatch, blank: str) -> None:
    with commanded_node(monkeypatch) as node:
        for kind in ENTITY_TYPES:
            for command in (
                ["show", "k"],
                ["profile", "show", "work"],
                ["save", "--content", "c", "--types", "tool"],
                ["mcp"],
            ):
                said = CliRunner().invoke(app, [*command, f"--{kind}", blank])
                told = f"the {kind} is empty: name somebody, or leave it out"
                assert (said.exit_code, told in said.stderr) == (1, True)
                variable = f"KLEDGER_{kind.upper()}"
                ran = CliRunner(env={variable: blank}).invoke(app, command)
                assert (ran.exit_code, f"{variable} is empty: name somebody, or unset it" in ran.stderr) == (1, True)
            ran = CliRunner(env={"KLEDGER_USER": "bob"}).invoke(app, ["list", f"--{kind}", blank, "--json"])
            assert json.loads(ran.stdout)["error"]["code"] == "illegal_scope"
        assert CliRunner().invoke(app, ["list", "--entity", blank]).exit_code == 1
        assert node.asked == []


def test_whom_a_command_names_asks_whatever_empty_variables_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with commanded_node(monkeypatch) as node:
        node.says("GET /api/knowledge/search", {"results": [], "count": 0, "position": 1, "recall_id": None})
        ran = CliRunner(env={"KLEDGER_USER": "", "KLEDGER_TEAM": " "}).invoke(app, ["search", "q", "--agent", "a"])
        assert ran.exit_code == 0
        assert node.asked[0].headers["x-ledger-agent"] == "a"


@pytest.mark.parametrize("blank", ["", " "])
def test_nobody_who_was_to_be_named_is_the_operator_in_python(blank: str) -> None:
    for kind in ENTITY_TYPES:
        with pytest.raises(IllegalScope):
            Caller.of({kind: blank})
        with LedgerClient("http://127.0.0.1:1") as ledger, pytest.raises(IllegalScope, match="name somebody"):
            ledger.acting_as(**{kind: blank})
    with pytest.raises(IllegalScope):
        Caller(further=(blank,))


async def test_a_tool_refuses_it_in_a_header_and_as_the_agent_that_says_it() -> None:
    async with mcp_door() as door:
        assert await door.refused("knowledge_list", {"X-Ledger-User": "user:mei"}) == "illegal_scope"
        assert await door.refused("knowledge_save", **ITEM, agent_id="agent:scribe") == "illegal_scope"
        assert await door.refused("knowledge_list", {"X-Ledger-User": " "}) == "illegal_scope"
        assert await door.refused("knowledge_save", **ITEM, agent_id="") == "illegal_scope"
        assert (await door.desk.ledger.head()).position == 0


async def test_the_agent_of_a_source_owns_what_the_operator_saves_under_its_name_alone() -> None:
    async with http_door() as door:
        answer = await door.post("/api/knowledge", json={**ITEM, "source": {"agent_id": "agent:scribe"}})
        refusal(answer, 422, "illegal_scope")
        many = await door.post("/api/knowledge/batch", json={"items": [{**ITEM, "source": {"agent_id": "a,b"}}, ITEM]})
        assert [each["outcome"] for each in many.json()["results"]] == ["refused", "saved"]


def test_a_token_is_bound_to_names_alone(tmp_path: Path) -> None:
    for name in NO_NAMES:
        with pytest.raises(IllegalScope):
            create_token(tmp_path, {"user": ["ada", name]})
    assert not tokens_file(tmp_path).exists()


async def test_a_token_that_was_made_before_speaks_for_what_it_is_bound_to(tmp_path: Path) -> None:
    _, token = create_token(tmp_path, {"user": ["KEPT"]})
    kept = tokens_file(tmp_path)
    kept.write_text(kept.read_text().replace("KEPT", "user:mei"))
    who = {"Authorization": f"Bearer {token}"}
    async with mcp_door(tokens=TokenBook(kept)) as door:
        saved = await door.call("knowledge_save", who, **ITEM)
        (item,) = (await door.call("knowledge_list", who))["results"]
        assert (item["id"], item["owner"]) == (saved["id"], "user:user:mei")


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        ((), {"user": "mei", "team": "web"}),
        (("--agent", "scribe"), {"agent": "scribe"}),
        (("--user", "mei", "--project", "harbor"), {"user": "mei", "project": "harbor"}),
        (("--entity", "guild:x"), {"scope": "guild:x"}),
    ],
)
def test_whom_the_command_line_names_is_who_asks_and_nobody_of_the_environment_beside(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sent: dict[str, str]
) -> None:
    with commanded_node(monkeypatch) as node:
        monkeypatch.setenv("KLEDGER_USER", "mei")
        monkeypatch.setenv("KLEDGER_TEAM", "web")
        node.says("GET /api/knowledge/search", {"results": [], "count": 0, "position": 1, "recall_id": None})
        assert CliRunner().invoke(app, ["search", "q", *words]).exit_code == 0
        headers = node.asked[0].headers
    named = {name.removeprefix("x-ledger-"): value for name, value in headers.items() if name.startswith("x-ledger-")}
    assert named == sent
