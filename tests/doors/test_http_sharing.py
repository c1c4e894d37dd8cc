"""Who sees what, and who says so: rows S1 to S5 of the mission, with the examples of source 002 as they are written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from kledger.contract.scopes import PRIORITY, Caller
from ledger.event import JsonObject, utc_now
from producers.operations.knowledge import over
from projections.search.ranking import Candidate, Standing, by_scope
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.search.ranked import rank
from tests.search.test_ranking import NOW

# Source 002: the six examples, and the caller for whom each is told.
EXAMPLES: list[JsonObject] = [
    {
        "type": "user_profile",
        "scopes": ["user:123"],
        "owner": "user:123",
        "visibility": "private",
        "content": "用户偏好使用 TypeScript",
    },
    {
        "type": "strategy",
        "scopes": ["project:456"],
        "owner": "agent:crawler_ops",
        "visibility": "shared",
        "content": "爬虫反爬策略:使用代理池 + 随机 UA",
    },
    {
        "type": "user_profile",
        "scopes": ["user:123", "project:456", "project:789"],
        "owner": "user:123",
        "visibility": "shared",
        "content": "用户在多个项目中都偏好使用 React",
    },
    {
        "type": "tool",
        "scopes": ["agent:crawler_ops", "agent:content_library", "agent:general_assistant"],
        "owner": "agent:crawler_ops",
        "visibility": "shared",
        "content": "Selenium 使用技巧:headless 模式配置",
    },
    {
        "type": "definition",
        "scopes": ["org:company"],
        "owner": "org:company",
        "visibility": "org",
        "content": "公司技术栈:React + TypeScript + Node.js",
    },
    {
        "type": "tool",
        "scopes": ["public"],
        "owner": "org:company",
        "visibility": "public",
        "content": "Git 常用命令速查表",
    },
]
ACL: JsonObject = {
    "id": "knowledge_001",
    "type": "strategy",
    "owner": "user:123",
    "acl": [
        {"entity": "user:123", "permission": "read_write"},
        {"entity": "project:456", "permission": "read"},
        {"entity": "agent:general_assistant", "permission": "read"},
    ],
}
CONTEXT = {
    "user_id": "123",
    "agent_id": "general_assistant",
    "project_id": "456",
    "team_id": "frontend",
    "org_id": "company",
}
U123 = {"X-Ledger-User": "123"}
READ = {"permission": "read"}
WRITE = {"permission": "read_write"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def named(context: dict[str, str]) -> dict[str, str]:
    return {f"X-Ledger-{name.removesuffix('_id')}": value for name, value in context.items()}


async def seen(door: Door, who: dict[str, str], **params: Any) -> list[str]:
    listed = await door.get("/api/knowledge", params={"limit": 100, **params}, headers=who)
    assert listed.status_code == 200, listed.text
    return sorted(item["id"] for item in listed.json()["results"])


async def shared(door: Door, item_id: str, who: dict[str, str], *acl: JsonObject) -> JsonObject:
    answer = await door.put(f"/api/knowledge/{item_id}/acl", json={"acl": list(acl)}, headers=who)
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    await door.desk.view.wait_for(told["position"])
    return told


async def registered(door: Door, kind: str = "department", priority: float = 2.5) -> None:
    answer = await door.post("/api/scope_types", json={"type": kind, "priority": priority})
    assert answer.status_code == 201, answer.text


async def test_the_examples_of_the_source_are_saved_and_labelled_as_written(door: Door) -> None:
    for number, example in enumerate(EXAMPLES):
        await door.saved({}, **{**example, "id": f"k{number}", "types": None})
        item = (await door.get(f"/api/knowledge/k{number}")).json()
        assert {name: item[name] for name in ("scopes", "owner", "visibility", "content")} == {
            name: example[name] for name in ("scopes", "owner", "visibility", "content")
        }
        assert item["types"] == [example["type"]]
    assert await seen(door, named(CONTEXT)) == ["k0", "k1", "k2", "k3", "k4", "k5"]
    assert await seen(door, {"X-Ledger-Project": "789"}) == ["k2", "k5"]
    assert await seen(door, BOB) == ["k5"]


async def test_a_label_that_does_not_follow_from_the_scopes_is_refused(door: Door) -> None:
    for label in ("private", "org", "public"):
        answer = await door.post("/api/knowledge", json={"task": "t", **EXAMPLES[1], "visibility": label})
        assert "shared" in refusal(answer, 422, "invalid_payload")


def test_visible_scopes_are_built_as_the_source_builds_them() -> None:
    caller = Caller.of({name.removesuffix("_id"): value for name, value in CONTEXT.items()})
    assert set(caller.visible_scopes()) == {
        "user:123",
        "agent:general_assistant",
        "project:456",
        "team:frontend",
        "org:company",
        "public",
    }


def test_results_are_ranked_by_the_priorities_of_the_source_and_of_registered_types() -> None:
    scopes = ["public", "org:company", "department:finance", "team:frontend", "agent:a", "project:456", "user:123"]
    standings = {scope: Standing(scope, 3, 1, 0, ["public", scope], NOW) for scope in scopes}
    ranked = rank(
        [_candidate(scope) for scope in scopes], standings, scopes, top_k=9, priority={**PRIORITY, "department": 2.5}
    )
    assert [each.scope for each in by_scope(ranked, {**PRIORITY, "department": 2.5})] == scopes[::-1]
    ranked = rank(
        [_candidate(scope) for scope in scopes], standings, scopes, top_k=9, priority={**PRIORITY, "department": 7}
    )
    assert ranked[0].scope == "department:finance"


def _candidate(scope: str) -> Candidate:
    return Candidate(scope, 1, keyword=1.0)


async def test_the_acl_of_the_source_is_taken_as_written(door: Door) -> None:
    told = await door.saved(U123, **{**ACL, "types": None})
    assert told["version"] == 2
    item = (await door.get("/api/knowledge/knowledge_001", headers=U123)).json()
    assert item["acl"] == ACL["acl"]
    assert (item["scopes"], item["visibility"]) == (["user:123"], "shared")
    for who in ({"X-Ledger-Project": "456"}, {"X-Ledger-Agent": "general_assistant"}):
        assert await seen(door, who) == ["knowledge_001"]
        refusal(await door.put("/api/knowledge/knowledge_001", json={"task": "x"}, headers=who), 403, "not_owner")
    assert await seen(door, {"X-Ledger-Project": "457"}) == []


async def test_saved_and_shared_are_one_batch_and_saving_it_again_answers_the_first(door: Door) -> None:
    payload = {"task": "t", "content": "c", "types": ["tool"], "id": "k", "acl": [{"entity": "user:bob", **READ}]}
    first = (await door.post("/api/knowledge", json=payload, headers=ALICE)).json()
    await door.desk.view.wait_for(first["position"])
    again = (await door.post("/api/knowledge", json=payload, headers=ALICE)).json()
    assert (again["duplicate"], again["position"], again["version"]) == (True, first["position"], 2)
    many = await door.post("/api/knowledge/batch", json={"items": [payload, {**payload, "id": "k2"}]}, headers=ALICE)
    assert [one["outcome"] for one in many.json()["results"]] == ["unchanged", "saved"]
    other = {**payload, "acl": [{"entity": "user:carol", **READ}]}
    refusal(await door.post("/api/knowledge", json=other, headers=ALICE), 409, "knowledge_exists")
    key = {"Idempotency-Key": "one-key"}
    unnamed = {name: value for name, value in payload.items() if name != "id"}
    one = (await door.post("/api/knowledge", json=unnamed, headers=ALICE | key)).json()
    await door.desk.view.wait_for(one["position"])
    two = (await door.post("/api/knowledge", json=unnamed, headers=ALICE | key)).json()
    assert {**one, "duplicate": True} == two
    log = [orjson.loads(event.body)["type"] async for part in door.desk.ledger.read() for event in part]
    assert log == ["knowledge.saved", "knowledge.shared"] * 3


async def test_an_import_larger_than_a_slice_shares_every_item_with_what_it_saves(door: Door) -> None:
    items = [
        {"task": "t", "content": f"c{number}", "types": ["tool"], "acl": [{"entity": f"user:u{number % 7}", **READ}]}
        for number in range(600)
    ]
    told = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert (told["saved"], told["position"]) == (600, 1200)
    await door.desk.view.wait_for(1200)
    assert len(await seen(door, {"X-Ledger-User": "u3"}, limit=1000)) == 86
    again = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert (again["saved"], again["unchanged"]) == (0, 600)


async def test_who_may_write_revises_and_does_nothing_else_of_the_owners(door: Door) -> None:
    await door.saved(id="k")
    await shared(door, "k", ALICE, {"entity": "user:bob", **WRITE}, {"entity": "team:web", **WRITE})
    done = await door.put("/api/knowledge/k", json={"content": "bettered", "add_helpful_case": {}}, headers=BOB)
    assert done.status_code == 200
    await door.desk.view.wait_for(done.json()["position"])
    carol = {"X-Ledger-User": "carol", "X-Ledger-Team": "web"}
    done = await door.put("/api/knowledge/k", json={"tags": {"by": "carol"}}, headers=carol)
    life = await door.get("/api/knowledge/k/history", params={"min_position": done.json()["position"]}, headers=ALICE)
    assert [(version["change"], version["actor"]) for version in life.json()["versions"]] == [
        ("saved", "user:alice"),
        ("shared", "user:alice"),
        ("revised", "user:bob"),
        ("revised", "team:web"),
    ]
    for body in ({"scopes": ["public"]}, {"owner": "user:bob"}, {"content": "x", "scopes": ["user:bob"]}):
        refusal(await door.put("/api/knowledge/k", json=body, headers=BOB), 403, "not_owner")
    refusal(await door.delete("/api/knowledge/k", headers=BOB), 403, "not_owner")
    refusal(await door.put("/api/knowledge/k/acl", json={"acl": []}, headers=BOB), 403, "not_owner")
    await shared(door, "k", ALICE, {"entity": "user:bob", **READ})
    refusal(await door.put("/api/knowledge/k", json={"content": "x"}, headers=BOB), 403, "not_owner")
    await shared(door, "k", ALICE)
    refusal(await door.get("/api/knowledge/k", headers=BOB), 404, "unknown_knowledge")
    assert "acl" not in (await door.get("/api/knowledge/k", headers=ALICE)).json()
    assert "kledger_refused_events 0.0" in (await door.get("/metrics")).text


async def test_why_visible_names_each_reason_and_since_which_event_it_holds(door: Door) -> None:
    await door.saved(id="k", scopes=["team:web"])
    await shared(door, "k", ALICE, {"entity": "user:bob", **READ})
    since = await shared(door, "k", ALICE, {"entity": "user:bob", **WRITE}, {"entity": "org:o", **READ})
    revised = await door.put("/api/knowledge/k", json={"content": "new"}, headers=BOB)
    fresh = {"min_position": revised.json()["position"]}
    who = BOB | {"X-Ledger-Team": "web"}
    told = (await door.get("/api/knowledge/k/why", params=fresh, headers=who)).json()
    scope, entry = told["because"]
    assert (scope["kind"], scope["entity"], scope["since"]["position"]) == ("scope", "team:web", 1)
    assert (entry["kind"], entry["entity"], entry["permission"]) == ("acl", "user:bob", "read_write")
    assert (entry["since"]["position"], entry["since"]["event_id"]) == (since["position"], since["event_id"])
    assert (entry["since"]["change"], entry["since"]["by"]) == ("shared", "user:alice")
    assert (told["also"], told["recalled"], told["visibility"]) == (["org:o"], True, "org")
    assert told["may_change"] == {"owner": "user:alice", "writers": ["user:bob"], "coordinators": [], "you": "writer"}
    owner = (await door.get("/api/knowledge/k/why", headers=ALICE)).json()
    assert [one["kind"] for one in owner["because"]] == ["owner"]
    assert (owner["recalled"], owner["may_change"]["you"]) == (True, "owner")
    operator = (await door.get("/api/knowledge/k/why")).json()
    assert ([one["kind"] for one in operator["because"]], operator["recalled"]) == (["operator"], True)


async def test_why_visible_says_that_lists_and_searches_do_not_show_what_is_out_of_recall(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def recalled(item_id: str, *who: dict[str, str]) -> list[bool]:
        fresh = {"min_position": await door.head()}
        told = [await door.get(f"/api/knowledge/{item_id}/why", params=fresh, headers=each) for each in who]
        return [each.json()["recalled"] for each in told]

    await door.saved(id="k", scopes=["team:web"])
    web = BOB | {"X-Ledger-Team": "web"}
    assert await recalled("k", ALICE, web, {}) == [True] * 3
    await door.delete("/api/knowledge/k", headers=ALICE)
    assert await recalled("k", ALICE, web, {}) == [False] * 3
    await door.post("/api/knowledge/k/restore", headers=ALICE)
    assert await recalled("k", ALICE, web, {}) == [True] * 3

    about = {"content": "two spaces", "kind": "convention", "id": "spaces"}
    quay = BOB | {"X-Ledger-Project": "quay"}
    proposed = await door.post("/api/memory", json=about, headers=quay)
    assert (proposed.status_code, await recalled("spaces", quay)) == (202, [False])

    brief = {"content": "back at noon", "layer": "short", "kind": "mood", "lifetime": 60, "id": "noon"}
    await door.post("/api/memory", json=brief, headers=ALICE)
    assert await recalled("noon", ALICE) == [True]
    monkeypatch.setattr(over, "utc_now", lambda: utc_now() + timedelta(seconds=61))
    assert await recalled("noon", ALICE) == [False], "its life is over, and no node has stated it"


async def test_a_registered_type_is_a_scope_like_the_others(door: Door) -> None:
    finance = {"X-Ledger-Scope": "department:finance"}
    payload = {"task": "t", "content": "c", "types": ["tool"], "scopes": ["department:finance"]}
    for told in (
        await door.post("/api/knowledge", json=payload, headers=ALICE),
        await door.post("/api/knowledge", json={**payload, "scopes": None, "owner": "department:finance"}),
        await door.post(
            "/api/knowledge", json={**payload, "scopes": None, "acl": [{"entity": "department:f"}]}, headers=ALICE
        ),
        await door.get("/api/knowledge", headers=finance),
        await door.get("/api/knowledge", params={"scopes": "department:finance"}, headers=ALICE),
        await door.get("/api/knowledge", params={"owner": "department:finance"}, headers=ALICE),
    ):
        assert "user, project, agent, team, org, public" in refusal(told, 422, "illegal_scope")
    batch = await door.post("/api/knowledge/batch", json={"items": [payload, {**payload, "scopes": ["public"]}]})
    assert [one["outcome"] for one in batch.json()["results"]] == ["refused", "saved"]
    await registered(door)
    await door.saved(id="k", scopes=["department:finance"])
    assert await seen(door, finance, types="tool", scopes="department:finance") == ["k"]
    both = {"X-Ledger-User": "bob", "X-Ledger-Scope": "department:f%2Cx,department:finance"}
    assert "k" in await seen(door, both)
    assert await seen(door, {"X-Ledger-Scope": "department:hr"}, scopes="department:finance") == []
    await door.saved(finance, id="theirs")
    assert (await door.get("/api/knowledge/theirs", headers=finance)).json()["owner"] == "department:finance"
    unknown = await door.get("/api/knowledge", headers={"X-Ledger-Scope": "guild:x"})
    assert "department" in refusal(unknown, 422, "illegal_scope")
    for odd in ("public", "department", "", "department:finance,,team:x"):
        refusal(await door.get("/api/knowledge", headers={"X-Ledger-Scope": odd}), 422, "illegal_scope")


async def test_types_are_the_operators_to_register_and_built_in_ones_stay(door: Door) -> None:
    refusal(await door.post("/api/scope_types", json={"type": "guild", "priority": 3}, headers=ALICE), 403, "not_owner")
    for kind in (*PRIORITY, "Guild", "a b", "x" * 33):
        answer = await door.post("/api/scope_types", json={"type": kind, "priority": 3})
        refusal(answer, 422, "invalid_payload")
    refusal(await door.post("/api/scope_types", json={"type": "guild", "priority": 11}), 422, "invalid_payload")
    await registered(door, "guild", 3.5)
    await registered(door, "guild", 0.5)
    head = {"min_position": await door.head()}
    told = (await door.get("/api/scope_types", params=head, headers=ALICE)).json()["scope_types"]
    assert [(one["type"], one["priority"], one["built_in"]) for one in told] == [
        ("user", 6, True),
        ("project", 5, True),
        ("agent", 4, True),
        ("team", 3, True),
        ("org", 2, True),
        ("public", 1, True),
        ("guild", 0.5, False),
    ]
    assert "kledger_refused_events 0.0" in (await door.get("/metrics")).text


async def test_an_acl_is_refused_with_what_is_wrong_in_it(door: Door) -> None:
    await door.saved(id="k")
    for acl, code in (
        ([{"entity": "user:bob", **READ}, {"entity": "user:bob", **WRITE}], "invalid_payload"),
        ([{"entity": "public", **READ}], "illegal_scope"),
        ([{"entity": "nobody", **READ}], "illegal_scope"),
        ([{"entity": "user:bob", "permission": "write"}], "invalid_payload"),
        ([{"entity": f"user:{number}", **READ} for number in range(65)], "invalid_payload"),
        ("user:bob", "invalid_payload"),
    ):
        refusal(await door.put("/api/knowledge/k/acl", json={"acl": acl}, headers=ALICE), 422, code)
