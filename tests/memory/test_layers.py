"""A memory is an item with a layer: accepted and answered as it was written, and counted by what happened to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.event import JsonObject
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.source_004 import EPISODIC, FOLLOWS, MEMORIES, PROCEDURAL, SEMANTIC

M, K = "/api/memory", "/api/knowledge"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def remembered(door: Door, who: dict[str, str] = ALICE, **stated: Any) -> JsonObject:
    answer = await door.post(M, json=stated, headers=who)
    assert answer.status_code == 201, answer.text
    saved: JsonObject = answer.json()
    await door.desk.view.wait_for(saved["position"])
    return saved


async def read(door: Door, item_id: str, who: dict[str, str] = ALICE, **asked: Any) -> JsonObject:
    answer = await door.get(f"{M}/{item_id}", headers=who, params=asked)
    assert answer.status_code == 200, answer.text
    found: JsonObject = answer.json()
    return found


async def ids(door: Door, who: dict[str, str] = ALICE, **asked: Any) -> list[str]:
    answer = await door.get(M, headers=who, params=asked)
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.json()["results"]]


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory["type"])
async def test_the_json_of_the_source_is_accepted_and_answered_as_written(door: Door, memory: JsonObject) -> None:
    saved = await remembered(door, **memory)
    assert (saved["id"], saved["layer"]) == (memory["id"], memory["type"])
    assert set(saved["ignored"]) == FOLLOWS & memory.keys()
    found = await read(door, memory["id"])
    assert found.keys() >= memory.keys()
    stated = memory.keys() - FOLLOWS
    assert {name: found[name] for name in stated} == {name: memory[name] for name in stated}


@pytest.mark.parametrize(
    ("kind", "meant"), [("conventoin", "convention"), ("prefrence", "preference"), ("known_isue", "known_issue")]
)
async def test_a_kind_that_is_nearly_one_with_a_meaning_is_kept_with_a_hint(door: Door, kind: str, meant: str) -> None:
    saved = await remembered(door, layer="semantic", kind=kind, content="tabs")
    (hint,) = saved["hints"]
    assert repr(kind) in hint
    assert f"{meant!r} may be meant" in hint
    assert (await read(door, saved["id"]))["kind"] == kind


@pytest.mark.parametrize("kind", ["convention", "preference", "recipe", "architecture", "issue", None])
async def test_a_kind_that_is_known_or_a_word_of_its_own_has_no_hint(door: Door, kind: str | None) -> None:
    assert (await remembered(door, layer="semantic", kind=kind, content="tabs"))["hints"] == []


async def test_what_is_counted_follows_from_events_and_not_from_what_was_typed_in(door: Door) -> None:
    await remembered(door, **PROCEDURAL)
    first = await read(door, "proc_xxx")
    assert (first["usage_count"], first["success_rate"], first["evidence_count"]) == (0, None, 1)
    assert (first["last_confirmed"], first["first_observed"]) == (None, first["created_at"])
    for verdict in ("helpful", "helpful", "harmful"):
        answer = await door.put(f"{K}/proc_xxx", json={f"add_{verdict}_case": {}}, headers=ALICE)
        await door.desk.view.wait_for(answer.json()["position"])
    later = await read(door, "proc_xxx")
    assert (later["usage_count"], later["success_rate"], later["evidence_count"]) == (3, 2 / 3, 3)
    assert later["last_confirmed"] > later["first_observed"]
    then = await read(door, "proc_xxx", as_of=first["position"])
    assert {name: then[name] for name in FOLLOWS} == {name: first[name] for name in FOLLOWS}


async def test_a_memory_is_an_item_with_its_words_and_its_layer(door: Door) -> None:
    await remembered(door, **PROCEDURAL)
    item = (await door.get(f"{K}/proc_xxx", headers=ALICE)).json()
    assert item["task"] == PROCEDURAL["trigger"]
    assert all(step in item["content"] for step in PROCEDURAL["steps"])
    stated = {name: PROCEDURAL[name] for name in ("name", "trigger", "steps")}
    assert item["memory"] == {"layer": "procedural", **stated}
    found = (await door.get(f"{K}/search", params={"q": "安全漏洞"}, headers=ALICE)).json()["results"]
    assert [each["id"] for each in found] == ["proc_xxx"]
    again = {name: item[name] for name in ("id", "task", "content", "types", "tags", "scopes", "owner", "memory")}
    answer = await door.post(K, json=again, headers=ALICE)
    assert (answer.status_code, answer.json()["duplicate"]) == (201, True), answer.text


async def test_tags_that_are_stated_anew_are_the_tags_of_a_memory(door: Door) -> None:
    saved = await remembered(door, layer="semantic", content="The lamp is green", tags=["green"])
    assert (await read(door, saved["id"]))["tags"] == ["green"]
    other = await door.put(f"{K}/{saved['id']}", json={"content": "The lamp is blue"}, headers=ALICE)
    await door.desk.view.wait_for(other.json()["position"])
    assert (await read(door, saved["id"]))["tags"] == ["green"], "nothing was said of them"
    revised = await door.put(f"{K}/{saved['id']}", json={"tags": {"colour": "blue"}}, headers=ALICE)
    await door.desk.view.wait_for(revised.json()["position"])
    assert (await read(door, saved["id"]))["tags"] == {"colour": "blue"}
    assert (await read(door, saved["id"], as_of=saved["position"]))["tags"] == ["green"]
    listed = (await door.get(M, headers=ALICE)).json()["results"]
    assert [each["tags"] for each in listed] == [{"colour": "blue"}]


async def test_plain_knowledge_is_no_memory(door: Door) -> None:
    plain = await door.saved()
    assert await ids(door) == []
    refusal(await door.get(f"{M}/{plain['id']}", headers=ALICE), 404, "unknown_knowledge")
    assert "memory" not in (await door.get(f"{K}/{plain['id']}", headers=ALICE)).json()


async def test_the_same_words_with_another_layer_are_another_statement(door: Door) -> None:
    await remembered(door, id="m", layer="semantic", content="c")
    again = await remembered(door, id="m", type="semantic", content="c")
    assert again["duplicate"]
    other = await door.post(M, json={"id": "m", "layer": "semantic", "content": "c", "category": "x"}, headers=ALICE)
    refusal(other, 409, "knowledge_exists")


async def test_the_timeline_is_by_when_things_happened_the_latest_first(door: Door) -> None:
    for name, at, importance in (("b", "02T12:00:00Z", 0.1), ("c", "03T12:00:00Z", 0.2), ("a", "01T12:00:00Z", 0.3)):
        await remembered(
            door, id=name, layer="episodic", event=name, happened_at=f"2026-03-{at}", importance=importance
        )
    await remembered(
        door, id="same", layer="episodic", event="x", happened_at="2026-03-02T13:00:00+01:00", importance=0.9
    )
    await remembered(door, id="fact", layer="semantic", content="y", kind="adr")
    assert await ids(door, layer="episodic") == ["c", "same", "b", "a"]
    between: dict[str, Any] = {"since": "2026-03-02T12:00:00Z", "until": "2026-03-03T12:00:00Z"}
    assert await ids(door, **between) == ["same", "b"]
    assert await ids(door, kind="adr,mood") == ["fact"]
    assert await ids(door, layer="semantic,episodic", limit=2) == ["fact", "c"]
    page = (await door.get(M, headers=ALICE, params={"limit": 2, "offset": 2})).json()
    assert ([each["id"] for each in page["results"]], page["total"], page["next"]) == (["same", "b"], 5, 4)
    last = (await door.get(M, headers=ALICE, params={"limit": 2, "offset": 4})).json()
    assert (last["count"], last["next"]) == (1, None)


async def test_a_memory_is_seen_by_those_who_see_the_item_and_by_nobody_else(door: Door) -> None:
    await remembered(door, **SEMANTIC)
    shared = await remembered(door, **EPISODIC, scopes=["user:bob"])
    assert await ids(door, BOB) == ["ep_xxx"]
    hidden = refusal(await door.get(f"{M}/mem_xxx", headers=BOB), 404, "unknown_knowledge")
    absent = refusal(await door.get(f"{M}/mem_xxz", headers=BOB), 404, "unknown_knowledge")
    assert hidden.replace("mem_xxx", "ID") == absent.replace("mem_xxz", "ID")
    assert (await door.get(M, headers=BOB, params={"layer": "semantic"})).json()["total"] == 0
    assert await ids(door, BOB, as_of=shared["position"]) == ["ep_xxx"]
    answer = await door.delete(f"{K}/ep_xxx", headers=ALICE)
    await door.desk.view.wait_for(answer.json()["position"])
    assert (await ids(door, BOB), await ids(door, BOB, status="retired")) == ([], ["ep_xxx"])


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        ({"content": "c"}, "layer"),
        ({"layer": "long", "content": "c"}, "layer"),
        ({"layer": "semantic"}, "content"),
        ({"layer": "semantic", "content": "c", "steps": ["1"]}, "procedural"),
        ({"layer": "episodic", "content": "c", "category": "x"}, "semantic"),
        ({"layer": "semantic", "content": "c", "lifetime": 9}, "short"),
        ({"layer": "semantic", "content": "c", "context": {"outcome": "o"}}, "episodic"),
        ({"layer": "episodic", "event": "e", "happened_at": "yesterday"}, "happened_at"),
        ({"layer": "episodic", "event": "e", "happened_at": "2026-02-30T00:00:00Z"}, "happened_at"),
        ({"layer": "semantic", "type": "short", "content": "c"}, "differ"),
        ({"layer": "semantic", "content": "c", "importance": 1.5}, "importance"),
        ({"layer": "short", "content": "c"}, "lifetime"),
        ({"layer": "short", "kind": "unheard_of", "content": "c"}, "follow_up"),
        ({"layer": "short", "kind": "mood", "content": "c", "lifetime": 0}, "lifetime"),
        ({"layer": "semantic", "content": "c", "expires": "2026-03-05T12:00:00Z"}, "expires"),
    ],
)
async def test_a_memory_that_does_not_fit_its_layer_is_refused_and_nothing_is_kept(
    door: Door, stated: JsonObject, named: str
) -> None:
    assert named in refusal(await door.post(M, json=stated, headers=ALICE), 422, "invalid_payload")
    assert await door.head() == 0


@pytest.mark.parametrize(("kind", "days"), [("preference", 7), ("decision", 7), ("follow_up", 3), ("mood", 1)])
async def test_a_short_memory_lives_as_long_as_its_kind_does(door: Door, kind: str, days: int) -> None:
    saved = await remembered(door, layer="short", kind=kind, content="c")
    assert (await read(door, saved["id"]))["lifetime"] == days * 86_400


async def test_the_edges_of_the_calendar_are_moments_too(door: Door) -> None:
    await remembered(door, id="m", layer="episodic", event="x", happened_at="0001-01-01T00:00:00Z")
    edges: dict[str, Any] = {"since": "0001-01-01T00:00:00+23:59", "until": "9999-12-31T23:59:59-23:59"}
    assert await ids(door, **edges) == ["m"]
    assert await ids(door, since="0001-01-01T00:00:00-23:59") == []
    for wrong in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-03-05T12:00:00", "2026-03-05"):
        stated = {"layer": "episodic", "event": "x", "happened_at": wrong}
        refusal(await door.post(M, json=stated, headers=ALICE), 422, "invalid_payload")


async def test_a_filter_that_is_no_word_or_no_moment_is_refused(door: Door) -> None:
    for asked in ({"layer": "long"}, {"kind": "No Kind"}, {"since": "4"}, {"until": "soon"}, {"status": "gone"}):
        refusal(await door.get(M, params=asked, headers=ALICE), 422, "invalid_payload")
