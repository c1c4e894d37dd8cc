"""A word of a filter that nothing has: an answer without items says so, and what is near that its reader sees."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from typer.testing import CliRunner

from producers.cli.main import app
from tests.doors.http_door import ALICE, BOB, Door, http_door
from tests.doors.scripted_node import commanded_node
from tests.memory.test_short_memories import K

ABOUT = ("/api/knowledge", "/api/knowledge/search", "/api/overview/facets")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(id="a", types=["strategy"], scopes=["public"])
        await opened.saved(id="b", types=["plan", "tool"], scopes=["public"])
        await opened.saved(id="c", types=["secretive"], scopes=["user:alice"])
        yield opened


async def asked(door: Door, path: str, who: dict[str, str] = ALICE, **params: Any) -> Any:
    query: dict[str, Any] = {"q": "deploy"} if path.endswith("search") else {}
    answer = await door.get(path, params={"min_position": await door.head(), **query, **params}, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("path", ABOUT)
@pytest.mark.parametrize(
    ("params", "field", "message"),
    [
        ({"types": "stratgy"}, "types", "no item that you see has the type 'stratgy': is 'strategy' meant?"),
        ({"scopes": "user:alcie"}, "scopes", "no item that you see has the scope 'user:alcie': is 'user:alice' meant?"),
        ({"owner": "user:alcie"}, "owner", "no item that you see belongs to 'user:alcie': is 'user:alice' meant?"),
        ({"tags": "nothing"}, "tags", "no item that you see has the tag 'nothing'"),
        (
            {"types": "quite_another"},
            "types",
            "no item that you see has the type 'quite_another': there are 'plan', 'secretive', 'strategy', 'tool'",
        ),
    ],
)
async def test_an_answer_without_items_names_a_word_that_nothing_has(
    door: Door, path: str, params: dict[str, Any], field: str, message: str
) -> None:
    answer = await asked(door, path, ALICE, **params)
    (value,) = params.values()
    assert answer["unmatched"] == [{"field": field, "value": value, "message": message}]


@pytest.mark.parametrize("path", ABOUT)
async def test_only_what_its_reader_sees_is_told_of(door: Door, path: str) -> None:
    answer = await asked(door, path, BOB, types="secretiv")
    assert "secretive" not in answer["unmatched"][0]["message"]
    assert [each["value"] for each in (await asked(door, path, BOB, types="secretive"))["unmatched"]] == ["secretive"]


@pytest.mark.parametrize("path", ABOUT)
async def test_nothing_is_said_where_items_are_found_or_the_words_are_known(door: Door, path: str) -> None:
    if not path.endswith("search"):  # the node of this door has no vectors
        assert "unmatched" not in await asked(door, path, types="strategy,stratgy")
    assert "unmatched" not in await asked(door, path, types="strategy", scopes="user:alice")
    assert "unmatched" not in await asked(door, path)


async def test_a_word_that_a_retired_item_alone_has_is_known(door: Door) -> None:
    assert (await door.delete(f"{K}/a", headers=ALICE)).is_success
    answer = await asked(door, K, types="strategy")
    assert answer["total"] == 0
    assert "unmatched" not in answer


async def test_nothing_is_said_to_who_sees_no_item_at_all() -> None:
    async with http_door() as empty:
        assert "unmatched" not in await asked(empty, K, types="stratgy")
        assert "unmatched" not in await asked(empty, "/api/knowledge/search", types="stratgy")


async def test_as_of_a_moment_the_words_of_then_are_meant(door: Door) -> None:
    (told,) = (await asked(door, K, types="tool", as_of="1"))["unmatched"]
    assert told["message"] == "no item that you see has the type 'tool': there are 'strategy'"


CHANGES, MEMORIES = "/api/overview/changes", "/api/memory"


@pytest.mark.parametrize(
    ("path", "params", "message"),
    [
        (CHANGES, {"types": "stratgy"}, "no item that you see has the type 'stratgy': is 'strategy' meant?"),
        (CHANGES, {"scopes": "user:alcie"}, "no item that you see has the scope 'user:alcie': is 'user:alice' meant?"),
        (CHANGES, {"owner": "user:alcie"}, "no item that you see belongs to 'user:alcie': is 'user:alice' meant?"),
        (MEMORIES, {"owner": "user:alcie"}, "no item that you see belongs to 'user:alcie': is 'user:alice' meant?"),
        (MEMORIES, {"tags": "nothing"}, "no item that you see has the tag 'nothing'"),
    ],
)
async def test_changes_and_memories_name_a_word_that_nothing_has_as_lists_do(
    door: Door, path: str, params: dict[str, Any], message: str
) -> None:
    answer = await asked(door, path, ALICE, **params)
    ((field, value),) = params.items()
    assert answer["unmatched"] == [{"field": field, "value": value, "message": message}]
    assert "unmatched" not in await asked(door, path)
    assert "unmatched" not in await asked(door, path, ALICE, owner="user:alice")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("prefrence", "no item that you see has the kind 'prefrence': is 'preference' meant?"),
        ("recipe", "no item that you see has the kind 'recipe': there are 'preference', 'decision'"),
    ],
)
async def test_a_list_of_memories_names_a_kind_that_nothing_has(door: Door, kind: str, message: str) -> None:
    told = [{"field": "kind", "value": kind, "message": message}]
    (none_yet,) = (await asked(door, MEMORIES, ALICE, kind=kind))["unmatched"]
    assert none_yet["message"] == f"no item that you see has the kind {kind!r}"
    for number, (kept, scope) in enumerate(
        (("preference", "user:alice"), ("preference", "public"), ("decision", "public"))
    ):
        said = {
            "id": f"m-{number}",
            "layer": "semantic",
            "content": f"what is {number}",
            "kind": kept,
            "scopes": [scope],
        }
        assert (await door.post(MEMORIES, json=said, headers=ALICE)).status_code == 201
    assert (await asked(door, MEMORIES, ALICE, kind=kind))["unmatched"] == told
    assert (await asked(door, MEMORIES, BOB, kind=f"{kind},decision,recipes"))["total"] == 1
    assert "unmatched" not in await asked(
        door, MEMORIES, ALICE, kind="preference", owner="user:alice", layer="episodic"
    )
    both = await asked(door, MEMORIES, ALICE, kind=kind, owner="user:alcie")
    assert [each["field"] for each in both["unmatched"]] == ["owner", "kind"]


async def test_a_kind_that_its_reader_does_not_see_is_not_told_of(door: Door) -> None:
    for kept, scope in (("preference", "user:alice"), ("decision", "public")):
        said = {"layer": "semantic", "content": f"what is {kept}", "kind": kept, "scopes": [scope]}
        assert (await door.post(MEMORIES, json=said, headers=ALICE)).status_code == 201
    (told,) = (await asked(door, MEMORIES, BOB, kind="prefrence"))["unmatched"]
    assert told["message"] == "no item that you see has the kind 'prefrence': there are 'decision'"


async def test_who_follows_a_view_that_has_not_moved_is_told_of_no_words(door: Door) -> None:
    assert "unmatched" not in await asked(door, CHANGES, ALICE, types="stratgy", after=await door.head())


def test_the_commands_print_what_is_said_of_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [{"field": "owner", "value": "user:alcie", "message": "no item that you see belongs to 'user:alcie'"}]
    with commanded_node(monkeypatch) as node:
        node.says("GET /api/overview/changes", {"changes": [], "next": 3, "position": 3, "unmatched": said})
        page = {"results": [], "count": 0, "total": 0, "next": None, "position": 3, "unmatched": said}
        node.says("GET /api/memory", page)
        for command in (["changes"], ["memory", "list"]):
            ran = CliRunner().invoke(app, [*command, "--owner", "user:alcie"])
            assert (ran.exit_code, "no item that you see belongs to 'user:alcie'" in ran.output) == (0, True)
