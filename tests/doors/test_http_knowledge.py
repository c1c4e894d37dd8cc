"""The knowledge endpoints of source 001, as written there, and what the ledger adds to them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from tests.doors.http_door import AGENT, ALICE, BOB, Door, http_door, refusal
from tests.knowhub.source import ITEM as EXAMPLE


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def test_the_example_of_the_source_is_saved_and_found_as_it_says(door: Door) -> None:
    answer = await door.post("/api/knowledge", json=EXAMPLE, headers=AGENT)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert told["version"] == 1
    assert told["duplicate"] is False
    assert told["id"].startswith(f"knowledge-{datetime.now(UTC):%Y%m%d}-")

    found = await door.get(
        "/api/knowledge/search",
        params={"q": "核心", "types": "tool,plan", "min_position": told["position"]},
        headers=AGENT,
    )
    body = found.json()
    assert body["count"] == 1
    (item,) = body["results"]
    assert item["id"] == told["id"]
    assert item["types"] == ["tool", "strategy"]
    assert item["tags"] == EXAMPLE["tags"]
    assert item["eval"] == {"score": 4, "helpful": 1, "harmful": 0, "confidence": 0.5}
    assert item["quality_score"] == 5.0
    assert item["source"].items() >= EXAMPLE["source"].items()
    assert item["visibility"] == "org"


async def test_the_feedback_examples_of_the_source_are_kept_with_their_cases(door: Door) -> None:
    item = (await door.post("/api/knowledge", json=EXAMPLE, headers=AGENT)).json()
    answer = await door.put(
        f"/api/knowledge/{item['id']}",
        json={
            "add_helpful_case": {"task": "任务描述", "outcome": "成功", "timestamp": "2026-03-05T12:00:00Z"},
            "add_harmful_case": {
                "task": "任务描述",
                "outcome": "失败",
                "reason": "原因",
                "timestamp": "2026-03-05T12:00:00Z",
            },
            "update_score": 4,
        },
        headers=AGENT,
    )
    assert answer.status_code == 200, answer.text
    assert [event["type"] for event in answer.json()["events"]] == [
        "knowledge.scored",
        "knowledge.rated",
        "knowledge.rated",
    ]
    many = await door.post(
        "/api/knowledge/batch_update",
        json={
            "feedback_list": [
                {
                    "knowledge_id": item["id"],
                    "is_helpful": True,
                    "case": {"task": "任务描述", "outcome": "成功", "timestamp": "2026-03-05T12:00:00Z"},
                }
            ]
        },
        headers=AGENT,
    )
    assert many.json()["updated"] == 1
    read = await door.get(
        f"/api/knowledge/{item['id']}", params={"min_position": many.json()["position"]}, headers=AGENT
    )
    told = read.json()["eval"]
    assert (told["helpful"], told["harmful"], told["score"]) == (2, 1, 4), "the example states one case twice"
    assert [case["outcome"] for case in told["helpful_history"]] == ["成功"]
    assert told["harmful_history"][0]["reason"] == "原因"
    assert told["harmful_history"][0]["timestamp"] == "2026-03-05T12:00:00Z"


async def test_defaults_are_those_of_the_sources(door: Door) -> None:
    told = await door.saved()
    item = (await door.get(f"/api/knowledge/{told['id']}", headers=ALICE)).json()
    assert (item["owner"], item["scopes"], item["visibility"]) == ("user:alice", ["user:alice"], "private")
    assert item["eval"]["score"] == 3
    assert (item["tags"], item["resource_ids"], item["status"]) == ({}, [], "active")


async def test_the_item_form_of_the_sources_is_taken_too(door: Door) -> None:
    item = {
        "id": "profile_001",
        "type": "user_profile",
        "task": "用户编码风格偏好",
        "tags": {"category": "preference"},
        "scopes": ["user:123", "project:456"],
        "owner": "user:123",
        "visibility": "shared",
        "content": "用户偏好使用 TypeScript",
        "source": {"agent_id": "general_assistant", "trace_id": "trace-xxx", "timestamp": "2026-03-03"},
        "eval": {"helpful": 5, "harmful": 0, "confidence": 0.9, "helpful_history": []},
        "created_at": "2026-03-05T12:00:00Z",
    }
    saved = await door.post("/api/knowledge", json=item)  # as the operator, who acts for any owner
    await door.desk.view.wait_for(saved.json()["position"])
    read = (await door.get("/api/knowledge/profile_001", headers={"X-Ledger-User": "123"})).json()
    assert read["types"] == ["user_profile"]
    assert read["eval"]["helpful"] == 5
    assert read["eval"]["confidence"] == 0.9
    assert read["source"]["timestamp"] == "2026-03-03"


async def test_what_came_with_the_payload_is_lifted_into_its_lineage(door: Door) -> None:
    told = await door.saved(message_id="m-1", source={"trace_id": "t-1", "message_id": "other"})
    edges = (await door.get("/api/lineage", params={"ref": told["id"]}, headers=ALICE)).json()["edges"]
    assert {(e["direction"], e["relation"], e["ref"]) for e in edges} == {
        ("from", "message", "message:m-1"),
        ("from", "message", "message:other"),
        ("from", "trace", "trace:t-1"),
    }


async def test_headers_win_over_the_payload_in_lineage_and_a_trace_tells_what_it_caused(door: Door) -> None:
    first = await door.saved({**ALICE, "X-Ledger-Trace-Id": "T%201"}, source={"trace_id": "other"})
    second = await door.saved({**ALICE, "X-Ledger-Causation-Id": first["event_id"]})
    edges = (await door.get("/api/lineage", params={"ref": "trace:T 1"}, headers=ALICE)).json()["edges"]
    assert [(e["direction"], e["relation"], e["entity_id"]) for e in edges] == [
        ("to", "trace", first["id"]),
        ("to", "caused", second["id"]),
    ]
    up = (await door.get("/api/lineage", params={"ref": second["id"]}, headers=ALICE)).json()["edges"]
    assert ("from", "trace", "trace:T 1") in {(e["direction"], e["relation"], e["ref"]) for e in up}
    by_event = await door.get("/api/lineage", params={"ref": f"event:{first['event_id']}"}, headers=ALICE)
    assert {(e["direction"], e["relation"]) for e in by_event.json()["edges"]} == {
        ("from", "trace"),
        ("to", "caused_by"),
    }
    unseen = await door.get("/api/lineage", params={"ref": "trace:T 1"}, headers=BOB)
    refusal(unseen, 404, "unknown_reference")


async def test_an_item_without_links_has_an_empty_lineage(door: Door) -> None:
    told = await door.saved()
    answer = await door.get("/api/lineage", params={"ref": told["id"]}, headers=ALICE)
    assert (answer.status_code, answer.json()["edges"]) == (200, [])
    assert [(event["role"], event["event_id"]) for event in answer.json()["events"]] == [("origin", told["event_id"])]


async def test_what_was_served_is_recorded_before_the_answer(door: Door) -> None:
    told = await door.saved()
    answer = await door.get("/api/knowledge/search", params={"q": "content"}, headers=ALICE)
    recall_id = answer.json()["recall_id"]
    await door.desk.view.wait_for(await door.head())
    edges = (await door.get("/api/lineage", params={"ref": told["id"]}, headers=ALICE)).json()["edges"]
    assert [(e["relation"], e["entity_id"]) for e in edges] == [("served", recall_id)]
    before = await door.head()
    quiet = await door.get("/api/knowledge/search", params={"q": "content", "record": "false"}, headers=ALICE)
    assert quiet.json()["recall_id"] is None
    assert await door.head() == before


async def test_a_search_still_answers_when_the_broker_does_not(door: Door) -> None:
    await door.saved()
    await door.desk.ledger.close()
    answer = await door.get("/api/knowledge/search", params={"q": "content"}, headers=ALICE)
    assert (answer.json()["count"], answer.json()["recall_id"]) == (1, None)
    assert "kledger_recalls_lost_total 1.0" in (await door.get("/metrics")).text
    refused = await door.post("/api/knowledge", json=EXAMPLE, headers=AGENT)
    refusal(refused, 503, "broker_unavailable")


async def test_the_owner_states_fields_anew_and_every_version_stays_readable(door: Door) -> None:
    told = await door.saved()
    url = f"/api/knowledge/{told['id']}"
    answer = await door.put(url, json={"content": "better", "expected_version": 1, "reason": "clearer"}, headers=ALICE)
    position = answer.json()["position"]
    item = (await door.get(url, params={"min_position": position}, headers=ALICE)).json()
    assert (item["content"], item["version"]) == ("better", 2)
    then = (await door.get(url, params={"as_of": told["position"]}, headers=ALICE)).json()
    assert (then["content"], then["version"]) == ("some content", 1)
    life = (await door.get(url + "/history", headers=ALICE)).json()
    assert [(v["version"], v["change"], v["content"]) for v in life["versions"]] == [
        (1, "saved", "some content"),
        (2, "revised", "better"),
    ]
    assert life["versions"][0]["valid_to"] == life["versions"][1]["valid_from"] == position


async def test_a_retired_item_is_not_recalled_and_can_be_restored(door: Door) -> None:
    told = await door.saved()
    url = f"/api/knowledge/{told['id']}"
    gone = (await door.delete(url, params={"reason": "old"}, headers=ALICE)).json()
    search: dict[str, Any] = {"q": "content", "min_position": gone["position"]}
    assert (await door.get("/api/knowledge/search", params=search, headers=ALICE)).json()["count"] == 0
    assert (await door.get(url, headers=ALICE)).json()["status"] == "retired"
    listed = await door.get("/api/knowledge", params={"status": "retired"}, headers=ALICE)
    assert [item["id"] for item in listed.json()["results"]] == [told["id"]]
    refusal(await door.delete(url, headers=ALICE), 409, "illegal_state")
    back = (await door.post(url + "/restore", headers=ALICE)).json()
    search["min_position"] = back["position"]
    assert (await door.get("/api/knowledge/search", params=search, headers=ALICE)).json()["count"] == 1
    refusal(await door.post(url + "/restore", headers=ALICE), 409, "illegal_state")


async def test_the_list_pages_and_filters(door: Door) -> None:
    ids = [(await door.saved(types=[kind]))["id"] for kind in ("tool", "plan", "tool")]
    await door.saved(BOB)
    listed = await door.get("/api/knowledge", headers=ALICE)
    assert [item["id"] for item in listed.json()["results"]] == ids[::-1]
    page = await door.get("/api/knowledge", params={"limit": 1, "offset": 1}, headers=ALICE)
    assert [item["id"] for item in page.json()["results"]] == [ids[1]]
    tools = await door.get("/api/knowledge", params={"types": "tool"}, headers=ALICE)
    assert [item["id"] for item in tools.json()["results"]] == [ids[2], ids[0]]
    scoped = await door.get("/api/knowledge", params={"scopes": "user:bob,public"}, headers=ALICE)
    assert scoped.json()["count"] == 0
    first = await door.get("/api/knowledge", params={"as_of": 1}, headers=ALICE)
    assert [item["id"] for item in first.json()["results"]] == ids[:1]
    assert (await door.get("/api/knowledge", params={"as_of": 0}, headers=ALICE)).json()["count"] == 0


async def test_a_moment_means_the_last_event_up_to_it(door: Door) -> None:
    first = await door.saved()
    moment = datetime.now(UTC).isoformat()
    await asyncio.sleep(0.002)  # the clock of the log has to move on past the moment
    second = await door.saved()
    params: dict[str, Any] = {"as_of": moment, "min_position": second["position"]}
    then = (await door.get("/api/knowledge", params=params, headers=ALICE)).json()
    assert (then["position"], [item["id"] for item in then["results"]]) == (first["position"], [first["id"]])
    unescaped = await door.get(f"/api/knowledge?as_of={moment}", headers=ALICE)
    assert unescaped.json()["position"] == first["position"]
    early = await door.get("/api/knowledge?as_of=2020-01-01T00:00:00Z", headers=ALICE)
    assert (early.json()["count"], early.json()["position"]) == (0, 0)
    search = await door.get("/api/knowledge/search", params={**params, "q": "content"}, headers=ALICE)
    assert (search.json()["count"], search.json()["position"]) == (1, first["position"])


async def test_any_id_is_legal_in_a_path(door: Door) -> None:
    for item_id in ("a/b/history", "100%2F", "知识 1", "facets", "trace:x?y#z"):
        await door.saved(id=item_id)
        # httpx leaves what is encoded already as it is
        path = "/api/knowledge/" + "".join(f"%{byte:02X}" for byte in item_id.encode())
        answer = await door.get(path, headers=ALICE)
        assert answer.json()["id"] == item_id
        history = await door.get(path + "/history", headers=ALICE)
        assert history.json()["id"] == item_id
    assert (await door.get(f"/api/knowledge/{quote('知识 1')}", headers=ALICE)).status_code == 200


async def test_saving_the_same_with_its_id_again_appends_nothing(door: Door) -> None:
    first = await door.saved(id="mine")
    head = await door.head()
    again = await door.saved(id="mine")
    assert again == {**first, "duplicate": True}
    assert await door.head() == head
    await door.put("/api/knowledge/mine", json={"content": "changed"}, headers=ALICE)
    assert (await door.saved(id="mine"))["duplicate"] is True
    other = await door.post(
        "/api/knowledge",
        json={"id": "mine", "task": "t", "content": "other", "types": ["tool"]},
        headers=ALICE,
    )
    refusal(other, 409, "knowledge_exists")


async def test_an_agent_that_saves_the_same_again_at_another_time_appends_nothing(door: Door) -> None:
    first = await door.saved(AGENT, id="mine")
    kept = (await door.get("/api/knowledge/mine", params={"min_position": first["position"]}, headers=AGENT)).json()
    assert kept["source"]["agent_id"] == AGENT["X-Ledger-Agent"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", kept["source"]["timestamp"])
    assert await door.saved(AGENT, id="mine") == {**first, "duplicate": True}
    head = await door.head()
    await door.put("/api/knowledge/mine", json={"content": "changed"}, headers=AGENT)
    named = {"source": {"agent_id": AGENT["X-Ledger-Agent"]}}
    assert (await door.saved(AGENT, id="mine"))["duplicate"] is True
    assert (await door.saved(AGENT, id="named", **named))["position"] == head + 2
    assert (await door.saved(AGENT, id="named", **named))["duplicate"] is True


async def test_an_id_whose_only_events_were_refused_is_free(door: Door) -> None:
    from ledger.event import NewEvent
    from ledger.events.knowledge import KnowledgeRated

    await door.desk.ledger.append(NewEvent(KnowledgeRated(verdict="helpful"), "ghost", "user:alice"))
    assert (await door.saved(id="ghost"))["duplicate"] is False
    await door.desk.ledger.append(NewEvent(KnowledgeRated(verdict="helpful"), "ghost2", "user:alice"))
    item = {"id": "ghost2", "task": "t", "content": "c", "types": ["tool"]}
    many = await door.post("/api/knowledge/batch", json={"items": [item]}, headers=ALICE)
    assert many.json()["saved"] == 1


async def test_an_idempotency_key_keeps_every_write_once(door: Door) -> None:
    item = await door.saved()
    url = f"/api/knowledge/{item['id']}"
    body = {"task": "t", "content": "c", "types": ["tool"]}
    verdicts = {"feedback_list": [{"knowledge_id": item["id"], "is_helpful": True}]}
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/api/knowledge", body),
        ("PUT", url, {"add_helpful_case": {"task": "x"}, "update_score": 5}),
        ("PUT", url, {"content": "new", "expected_version": 2}),
        ("POST", "/api/knowledge/batch_update", verdicts),
        ("DELETE", url, None),
        ("POST", url + "/restore", None),
        ("PUT", "/api/v1/memories/user", {"content": {"occupation": "cook"}}),
        ("PATCH", "/api/v1/memories/user", {"content": {"timezone": "UTC"}}),
        ("DELETE", "/api/v1/memories/user", None),
    ]
    for number, (method, path, payload) in enumerate(calls):
        headers = {**ALICE, "Idempotency-Key": f"key-{number}"}
        first = await door.request(method, path, json=payload, headers=headers)
        assert first.status_code in (200, 201), first.text
        head = await door.head()
        await door.desk.view.wait_for(head)
        again = await door.request(method, path, json=payload, headers=headers)
        assert again.status_code == first.status_code, again.text
        assert await door.head() == head, f"{method} {path} was kept twice"
        told = {**first.json(), "duplicate": True} if number == 0 else first.json()
        assert again.json() == told
    other = await door.request("POST", "/api/knowledge", json=body, headers={**BOB, "Idempotency-Key": "key-0"})
    assert other.json()["duplicate"] is False  # a key is the caller's own


async def test_a_batch_is_judged_item_by_item_and_sending_it_again_appends_nothing(door: Door) -> None:
    await door.saved(id="taken", content="first")
    good = [
        {"id": f"k-{n}", "task": "t", "content": f"c {n}", "types": ["tool"], "scopes": ["public"]} for n in range(5)
    ]
    unnamed = {"task": "t", "content": "no id", "types": ["tool"]}
    items = [
        *good,
        unnamed,
        unnamed,
        {"id": "taken", "task": "a task", "content": "other", "types": ["tool"]},
        {"id": "k-0", "task": "t", "content": "twin says otherwise", "types": ["tool"]},
        {"id": "bad", "task": "t", "content": "", "types": ["tool"]},
        {"id": "bobs", "task": "t", "content": "c", "types": ["tool"], "owner": "user:bob"},
    ]
    answer = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert [(r["index"], r["outcome"]) for r in answer["results"]] == [
        *((n, "saved") for n in range(6)),
        (6, "unchanged"),
        *((n, "refused") for n in range(7, 11)),
    ]
    assert [r["error"]["code"] for r in answer["results"][7:]] == [
        "knowledge_exists",
        "knowledge_exists",
        "invalid_payload",
        "not_owner",
    ]
    assert (answer["saved"], answer["unchanged"], answer["refused"]) == (6, 1, 4)
    head = await door.head()
    assert answer["position"] == head == 7
    again = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert (again["saved"], again["unchanged"], again["refused"]) == (0, 7, 4)
    assert again["results"][0]["position"] == answer["results"][0]["position"]
    assert await door.head() == head


async def test_a_batch_again_while_the_view_is_behind_appends_nothing(door: Door) -> None:
    items = [{"id": f"k-{n}", "task": "t", "content": f"c {n}", "types": ["tool"]} for n in range(20)]
    async with door.desk.projector.paused():
        await door.post("/api/knowledge/batch", json={"items": items[:10]}, headers=ALICE)
        second = asyncio.create_task(door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE))
        await asyncio.sleep(0)
    told = (await second).json()
    assert (told["saved"], told["unchanged"]) == (10, 10)
    assert await door.head() == 20


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "once"}], ids=["by its ids", "by its key"])
async def test_a_batch_again_answers_with_the_positions_of_the_first_time(door: Door, key: dict[str, str]) -> None:
    acl = [{"entity": "user:bob", "permission": "read"}]
    plain = {"task": "t", "types": ["tool"]}
    items = [{"id": "a", "content": "a", **plain}, {"id": "b", "content": "b", "acl": acl, **plain}]
    first = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE | key)).json()
    await door.desk.view.wait_for(await door.head())
    again = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE | key)).json()
    assert [one["outcome"] for one in again["results"]] == ["unchanged", "unchanged"]
    assert [one["position"] for one in again["results"]] == [one["position"] for one in first["results"]] == [1, 3]
    assert again["position"] == first["position"] == await door.head()


async def test_each_change_by_its_owner_may_name_the_version_that_they_read_and_is_refused_at_another(
    door: Door,
) -> None:
    shared = {"acl": [{"entity": "team:web", "permission": "read"}]}
    changes: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
        ("PUT", "", {"content": "anew"}),
        ("PUT", "/acl", shared),
        ("POST", "/revert", {"to_version": 1}),
        ("DELETE", "", None),
        ("POST", "/restore", None),
    )
    told = await door.saved()
    url = f"/api/knowledge/{told['id']}"

    async def changed(method: str, path: str, body: dict[str, Any] | None, expected: int, key: str) -> Any:
        asked = {"expected_version": expected}
        stated: dict[str, Any] = {"params": asked} if body is None else {"json": {**body, **asked}}
        return await door.request(method, f"{url}{path}", headers={**ALICE, "Idempotency-Key": key}, **stated)

    for version, each in enumerate(changes, 1):
        change = partial(changed, *each)
        head = await door.head()
        for wrong in (version - 1 or 99, version + 1):
            answer = await change(wrong, f"{version}-{wrong}")
            refusal(answer, 409, "version_conflict")
            assert answer.json()["error"]["details"]["current_version"] == version
        refusal(await change(0, f"{version}-0"), 422, "invalid_payload")
        assert await door.head() == head, "nothing was appended"
        kept = await change(version, f"{version}-kept")
        assert kept.status_code == 200, (each, kept.text)
        again = await change(version, f"{version}-kept")  # sent again after an error it is what it was
        assert (again.status_code, again.json()["position"]) == (200, kept.json()["position"])


async def test_of_many_who_share_one_version_at_once_exactly_one_is_kept(door: Door) -> None:
    url = f"/api/knowledge/{(await door.saved())['id']}"

    async def share(number: int) -> Any:
        body = {"acl": [{"entity": f"team:t{number}"}], "expected_version": 1}
        return await door.put(f"{url}/acl", json=body, headers=ALICE)

    answers = await asyncio.gather(*(share(number) for number in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 5


async def test_of_many_concurrent_revisions_of_one_version_exactly_one_is_kept(door: Door) -> None:
    told = await door.saved()
    url = f"/api/knowledge/{told['id']}"

    async def revise(number: int) -> Any:
        body = {"content": f"by {number}", "expected_version": 1}
        return await door.put(url, json=body, headers=ALICE)

    async def rate(_: int) -> Any:
        return await door.put(url, json={"add_helpful_case": {"outcome": "ok"}}, headers=ALICE)

    answers = await asyncio.gather(*(f(n) for n in range(8) for f in (revise, rate)))
    revisions = answers[::2]
    assert sorted(a.status_code for a in revisions) == [200] + [409] * 7
    for answer in revisions:
        if answer.status_code == 409:
            refusal(answer, 409, "version_conflict")
            assert answer.json()["error"]["details"].get("current_version", 2) == 2
    assert all(a.status_code == 200 for a in answers[1::2])
    head = await door.head()
    item = (await door.get(url, params={"min_position": head}, headers=ALICE)).json()
    winner = next(n for n, a in enumerate(revisions) if a.status_code == 200)
    assert (item["version"], item["content"], item["eval"]["helpful"]) == (2, f"by {winner}", 9)


async def test_a_rating_that_comes_between_does_not_fail_a_revision(door: Door) -> None:
    from ledger.event import NewEvent
    from ledger.events.knowledge import KnowledgeRated

    told = await door.saved()
    ledger = door.desk.ledger
    plain_append, interfered = ledger.append, 0

    async def append(event: NewEvent) -> Any:
        nonlocal interfered
        if event.fact.name == "knowledge.revised" and not interfered:
            interfered += 1
            await plain_append(NewEvent(KnowledgeRated(verdict="helpful"), told["id"], "user:alice"))
        return await plain_append(event)

    ledger.append = append  # type: ignore[method-assign]  # somebody else writes in just that moment
    answer = await door.put(
        f"/api/knowledge/{told['id']}", json={"content": "new", "expected_version": 1}, headers=ALICE
    )
    assert (answer.status_code, interfered) == (200, 1)


async def test_health_metrics_and_the_openapi_document_are_there(door: Door) -> None:
    await door.saved()
    await door.get("/api/knowledge/search", params={"q": "content"}, headers=ALICE)
    await door.get("/api/knowledge/nothing", headers=ALICE)
    assert (await door.get("/health")).json() == {"status": "healthy", "reasons": []}
    door.desk.admin.reasons.append("the projector stands still")
    unhealthy = await door.get("/health")
    assert (unhealthy.status_code, unhealthy.json()["reasons"]) == (503, ["the projector stands still"])
    assert (await door.get("/health/live")).status_code == 200
    text = (await door.get("/metrics")).text
    for line in (
        'kledger_http_requests_total{method="POST",route="/api/knowledge",status="201"} 1.0',
        'kledger_http_requests_total{method="GET",route="/api/knowledge/{item_id}",status="404"} 1.0',
        'kledger_events_appended_total{type="knowledge.saved"} 1.0',
        'kledger_events_appended_total{type="recall.served"} 1.0',
        "kledger_searches_total 1.0",
        "kledger_log_head 2.0",
        "kledger_refused_events 0.0",
        "kledger_broker_up 1.0",
    ):
        assert line in text, line
    document = (await door.get("/openapi.json")).json()
    save = document["paths"]["/api/knowledge"]["post"]
    assert "SaveRequest" in str(save["requestBody"])
    assert "x-ledger-user" in {parameter["name"] for parameter in save["parameters"]}
    # asked twice, told once
    assert (await door.get("/openapi.json")).json() == document
