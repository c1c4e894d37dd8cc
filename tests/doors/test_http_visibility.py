"""Who sees what: no endpoint tells a caller of an item outside their scopes, now or as of then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

TEAM = {"X-Ledger-User": "carol", "X-Ledger-Team": "frontend"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def seen(door: Door, who: dict[str, str], **params: Any) -> set[str]:
    """The ids that the list and the search tell, which have to agree."""
    listed = (await door.get("/api/knowledge", params={"limit": 100, **params}, headers=who)).json()
    asked = {"q": "content", "top_k": 100, "record": "false", **params}
    found = (await door.get("/api/knowledge/search", params=asked, headers=who)).json()
    ids = {item["id"] for item in listed["results"]}
    assert ids == {item["id"] for item in found["results"]}
    return ids


async def test_an_item_is_seen_through_its_scopes_alone(door: Door) -> None:
    await door.saved(id="private")
    await door.saved(id="team", scopes=["team:frontend", "user:alice"])
    await door.saved(id="public", scopes=["public"])
    assert await seen(door, ALICE) == {"private", "team", "public"}
    assert await seen(door, TEAM) == {"team", "public"}
    assert await seen(door, BOB) == {"public"}
    assert await seen(door, {}) == {"private", "team", "public"}, "who says nothing on loopback reads all"
    for who in (TEAM, BOB):
        for url in ("/api/knowledge/private", "/api/knowledge/private/history"):
            hidden = await door.get(url, headers=who)
            missing = await door.get(url.replace("private", "nothing"), headers=who)
            assert refusal(hidden, 404, "unknown_knowledge") == refusal(missing, 404, "unknown_knowledge").replace(
                "nothing", "private"
            )


async def test_who_says_nothing_reads_judges_and_changes_any_item(door: Door) -> None:
    await door.saved(id="private")
    assert (await door.get("/api/knowledge/private")).json()["owner"] == "user:alice"
    revised = await door.put("/api/knowledge/private", json={"content": "by the operator"})
    assert revised.status_code == 200
    life = await door.get("/api/knowledge/private/history", params={"min_position": revised.json()["position"]})
    assert [version["actor"] for version in life.json()["versions"]] == ["user:alice"] * 2
    judged = await door.put("/api/knowledge/private", json={"update_score": 1})
    assert judged.status_code == 200, judged.text
    read = {"min_position": judged.json()["position"]}
    assert (await door.get("/api/knowledge/private", params=read)).json()["eval"]["score"] == 1


async def test_off_loopback_who_says_nothing_finds_what_is_public_alone() -> None:
    async with http_door(on_loopback=False) as door:
        await door.saved(id="private")
        await door.saved(id="public", scopes=["public"])
        assert await seen(door, {}) == {"public"}
        assert (await door.get("/api/knowledge/private")).status_code == 200
        refusal(await door.put("/api/knowledge/private", json={"update_score": 1}), 404, "unknown_knowledge")


async def test_an_owner_sees_judges_and_changes_what_it_owns_whatever_its_scopes(door: Door) -> None:
    await door.saved(id="given", scopes=["team:frontend"])
    assert await seen(door, ALICE) == {"given"}
    assert await seen(door, BOB) == set()
    assert (await door.get("/api/knowledge/given", headers=ALICE)).status_code == 200
    assert (await door.put("/api/knowledge/given", json={"update_score": 5}, headers=ALICE)).status_code == 200
    assert (await door.put("/api/knowledge/given", json={"content": "content 2"}, headers=ALICE)).status_code == 200
    assert (await door.delete("/api/knowledge/given", headers=ALICE)).status_code == 200


async def test_what_was_closed_stays_closed_as_of_then(door: Door) -> None:
    told = await door.saved(id="was-public", scopes=["public"])
    closed = await door.put("/api/knowledge/was-public", json={"scopes": ["user:alice"]}, headers=ALICE)
    now = {"min_position": closed.json()["position"], "as_of": told["position"]}
    assert await seen(door, ALICE, **now) == {"was-public"}
    assert await seen(door, BOB, **now) == set()
    answer = await door.get("/api/knowledge/was-public", params=now, headers=BOB)
    refusal(answer, 404, "unknown_knowledge")


async def test_what_was_private_stays_private_in_the_history(door: Door) -> None:
    told = await door.saved(id="k")
    opened = await door.put(
        "/api/knowledge/k", json={"scopes": ["public"], "content": "content for all"}, headers=ALICE
    )
    params = {"min_position": opened.json()["position"]}
    bobs = (await door.get("/api/knowledge/k/history", params=params, headers=BOB)).json()
    assert [version["version"] for version in bobs["versions"]] == [2]
    alices = (await door.get("/api/knowledge/k/history", headers=ALICE)).json()
    assert [version["version"] for version in alices["versions"]] == [1, 2]
    refusal(
        await door.get("/api/knowledge/k", params={"as_of": told["position"]}, headers=BOB),
        404,
        "unknown_knowledge",
    )


@pytest.mark.parametrize("path", ["/api/knowledge", "/api/resource"])
async def test_as_of_before_its_save_a_reader_is_told_so_and_nobody_else_is(door: Door, path: str) -> None:
    await door.saved(id="earlier")
    if path == "/api/knowledge":
        saved = await door.saved(id="k")
    else:
        answer = await door.post(path, json={"id": "k", "title": "t"}, headers=ALICE)
        saved = answer.json()
    code = "unknown_knowledge" if path == "/api/knowledge" else "unknown_resource"
    before = {"as_of": saved["position"] - 1, "min_position": saved["position"]}
    told = refusal(await door.get(f"{path}/k", params=before, headers=ALICE), 404, code)
    assert f"not there yet at position {before['as_of']}" in told
    assert f"ask as of {saved['position']}" in told
    hidden = refusal(await door.get(f"{path}/k", params=before, headers=BOB), 404, code)
    nothing = refusal(await door.get(f"{path}/none", params=before, headers=BOB), 404, code)
    assert hidden.replace("'k'", "'none'") == nothing


async def test_as_of_a_time_when_it_was_closed_a_reader_is_told_nothing_of_that_time(door: Door) -> None:
    saved = await door.saved(id="k")
    opened = await door.put("/api/knowledge/k", json={"scopes": ["public"]}, headers=ALICE)
    at = {"min_position": opened.json()["position"]}
    told = [
        refusal(await door.get("/api/knowledge/k", params={**at, "as_of": then}, headers=BOB), 404, "unknown_knowledge")
        for then in (saved["position"] - 1, saved["position"])
    ]
    assert told[0].replace(f"position {saved['position'] - 1}", f"position {saved['position']}") == told[1]
    assert "not open to you" in told[0]


async def test_given_away_is_given_away(door: Door) -> None:
    await door.saved(id="k", scopes=["public"])
    given = await door.put("/api/knowledge/k", json={"owner": "user:bob"}, headers=ALICE)
    assert given.status_code == 200
    refusal(await door.put("/api/knowledge/k", json={"task": "x"}, headers=ALICE), 403, "not_owner")
    assert (await door.put("/api/knowledge/k", json={"task": "x"}, headers=BOB)).status_code == 200
    refused = await door.get("/metrics")
    assert "kledger_refused_events 0.0" in refused.text


async def test_any_identity_can_be_named(door: Door) -> None:
    who = {"X-Ledger-User": "%E5%BC%A0%E4%B8%89%2F1"}
    await door.saved(who, id="hers")
    assert (await door.get("/api/knowledge/hers", headers=who)).json()["owner"] == "user:张三/1"


async def test_memories_are_the_users_own(door: Door) -> None:
    await door.put("/api/v1/memories/user", json={"content": {"occupation": "cook"}}, headers=ALICE)
    await door.desk.view.wait_for(await door.head())
    assert (await door.get("/api/v1/memories/user", headers=BOB)).json()["occupation"] is None
    edges = await door.get("/api/lineage", params={"ref": "trace:t"}, headers=BOB)
    refusal(edges, 404, "unknown_reference")


async def verdicts(door: Door) -> list[tuple[str, str, str | None]]:
    """(event, actor, through) of every judgement in the log."""
    kept = [orjson.loads(event.body) async for events in door.desk.ledger.read() for event in events]
    judged = [each for each in kept if each["type"] in ("knowledge.rated", "knowledge.scored")]
    return [(each["type"], each["actor"], each["data"].get("through")) for each in judged]


async def test_a_verdict_names_by_what_its_actor_reads_the_item(door: Door) -> None:
    agents = {"X-Ledger-User": "alice", "X-Ledger-Agent": "scribe", "X-Ledger-Team": "frontend"}
    await door.saved(id="public", scopes=["public"])
    await door.saved(BOB, id="team", scopes=["team:frontend", "agent:scribe"])
    await door.saved(BOB, id="agents", scopes=["agent:scribe"])
    await door.saved(id="own")
    for item in ("public", "team", "agents", "own"):
        answer = await door.put(f"/api/knowledge/{item}", json={"update_score": 4}, headers=agents)
        assert answer.status_code == 200, answer.text
    feedback = [{"knowledge_id": item, "is_helpful": True} for item in ("team", "agents", "own")]
    told = await door.post("/api/knowledge/batch_update", json={"feedback_list": feedback}, headers=agents)
    assert told.json()["updated"] == 3
    named = [("user:alice", "team:frontend"), ("agent:scribe", "agent:scribe"), ("user:alice", "user:alice")]
    assert await verdicts(door) == [
        ("knowledge.scored", "user:alice", "user:alice"),  # it is hers
        *(("knowledge.scored", *each) for each in named),
        *(("knowledge.rated", *each) for each in named),
    ]
    await door.desk.view.wait_for(await door.head())
    assert "kledger_refused_events 0.0" in (await door.get("/metrics")).text


async def test_who_gives_an_item_away_judges_it_before_and_not_in_the_same_request(door: Door) -> None:
    await door.saved(id="k")
    head = await door.head()
    both = {"owner": "user:bob", "scopes": ["user:bob"], "update_score": 5}
    refusal(await door.put("/api/knowledge/k", json=both, headers=ALICE), 403, "not_reader")
    assert await door.head() == head, "nothing is kept"
    kept = await door.put("/api/knowledge/k", json={**both, "scopes": ["user:alice"]}, headers=ALICE)
    assert kept.status_code == 200
    assert await verdicts(door) == [("knowledge.scored", "user:alice", "user:alice")]
