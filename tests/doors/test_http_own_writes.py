"""What a caller wrote is in the caller's next read, whichever read that is; where it cannot be, the answer says so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.errors import ViewBehind
from kledger.contract.knowledge import Case
from ledger.event import Appended, JsonObject, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRetired
from producers.operations.own_writes import NOTHING, OwnWrites, Writer, Written, speaks
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal

K, M = "/api/knowledge", "/api/v1/memories"
ITEM = {"id": "mine", "task": "fix the lamp", "content": "turn the fuse", "types": ["tool"]} | {
    "memory": {"layer": "semantic"}
}
IN_THE_PROJECT = ALICE | {"X-Ledger-Project": "light"}
RESOURCE = {"id": "notes/lamp", "title": "The lamp", "body": "its plan"}
DOCUMENT = {"id": "notes/lamp.md", "text": "The lamp is by the door."}

READS = [
    f"{K}",
    f"{K}/mine",
    f"{K}/mine/history",
    f"{K}/mine/why",
    f"{K}/mine/recalls",
    "/api/recalls",
    f"{K}/search?q=lamp",
    "/api/lineage?ref=mine",
    "/api/traces",
    "/api/memory",
    "/api/memory/mine",
    "/api/memory/health",
    "/api/memory/held",
    "/api/recall/startup",
    "/api/recall/startup?q=lamp",
    "/api/goals",
    "/api/goals/light",
    "/api/resource",
    "/api/resource/notes/lamp",
    "/api/resource/notes/lamp/history",
    "/api/documents",
    "/api/documents/notes/lamp.md",
    f"{M}",
    f"{M}/user",
    f"{M}/user/prompt",
    f"{M}/user/history",
    "/api/evolutions",
    "/api/extractions",
    "/api/conflicts",
    "/api/slims",
    "/api/scope_types",
    "/api/sessions",
    "/api/projects/light/members",
    "/api/overview/facets",
    "/api/overview/changes",
    "/api/overview",
]
"""Every read of a caller, one a route."""
OF_ITS_OWN_LAST_EVENT = {
    "/api/evolutions/{evolution_id}",
    "/api/extractions/{extraction_id}",
    "/api/conflicts/{conflict_id}",
}
"""These wait for the last event of what they are asked for, whoever wrote it."""
NOT_OF_THE_LOG = {
    "/api/admin/status",
    "/api/whoami",
    "/api/admin/jobs",
    "/api/admin/jobs/{job_id}",
    "/api/admin/certificates",
    "/api/admin/columns",
    "/api/bulks/{bulk_id}",
    "/api/admin/attach",
    "/api/admin/models",
    "/api/prompts",
    "/api/prompts/{name}",
    "/api/sessions/{session_id}/messages",
    "/api/sessions/{session_id}/context",
    "/api/messages/{record_id}",
    "/api/sessions/{session_id}/summaries",
    "/api/sessions/{session_id}/scratchpad",
    "/api/sessions/{session_id}/expand/{record_id}",
}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def written(door: Door, who: dict[str, str] = ALICE) -> int:
    """Everything that the reads above read, written at once; the last position."""
    item = await door.post(K, json=ITEM, headers=who)
    resource = await door.post("/api/resource", json=RESOURCE, headers=who)
    document = await door.post("/api/documents", json=DOCUMENT, headers=who)
    memory = await door.put(f"{M}/user", json={"content": {}}, headers=who)
    goal = await door.post("/api/goals/light/focus", json={"description": "lamp"}, headers=who)
    for answer in (item, resource, document, memory, goal):
        assert answer.status_code < 300, answer.text
    return int(goal.json()["position"])


def lacks(answer: Any) -> list[JsonObject]:
    """What an answer says that it lacks, wherever its position is."""
    body = answer.json()
    if isinstance(body, dict) and "degraded" in body:
        found: list[JsonObject] = body["degraded"]
        return found
    return list(json.loads(answer.headers.get("X-Ledger-Degraded", "[]")))


@pytest.mark.parametrize("path", READS)
async def test_a_read_sees_what_its_caller_wrote_the_moment_before(door: Door, path: str) -> None:
    position = await written(door)
    answer = await door.get(path, headers=IN_THE_PROJECT)
    assert answer.status_code == 200, answer.text
    assert lacks(answer) == []
    if path == f"{K}/mine":  # what else was written is nothing to it (tests/projections/test_ahead.py)
        assert answer.json()["content"] == ITEM["content"]
    elif path == K:  # it may come before the fold (tests/projections/test_lists_ahead.py)
        assert answer.json()["position"] >= position
    else:
        assert door.desk.view.position >= position


@pytest.mark.parametrize("path", READS)
async def test_a_read_that_cannot_see_it_in_time_says_so(door: Door, path: str) -> None:
    await door.saved(ALICE, task="an older lamp")
    before = door.desk.view.position
    async with door.desk.projector.paused():
        item = await door.post(K, json=ITEM, headers=ALICE)
        joined = "&" if "?" in path else "?"
        answer = await door.get(f"{path}{joined}wait=0", headers=IN_THE_PROJECT)
        if answer.status_code == 503:  # what it names is not there yet, or was never written
            assert "mine" not in path or f"position {item.json()['position']}" in refusal(answer, 503, "view_behind")
            return
        assert answer.status_code == 200, answer.text
        view = next(each for each in lacks(answer) if each["part"] == "view")
        assert view["position"] == before
        assert str(item.json()["position"]) in view["reason"]


async def test_every_route_that_reads_is_among_these(door: Door) -> None:
    document = (await door.get("/openapi.json")).json()
    routes = {path for path, methods in document["paths"].items() if "get" in methods and path.startswith("/api/")}
    forms = {path for path in routes if not path.startswith(("/api/admin",))}
    named = {
        path.replace("{item_id}", "mine")
        .replace("{goal_id}", "light")
        .replace("{resource_id}", "notes/lamp")
        .replace("{document_id}", "notes/lamp.md")
        .replace("{project_id}", "light")
        for path in forms - OF_ITS_OWN_LAST_EVENT - NOT_OF_THE_LOG
    }
    asked = {path.partition("?")[0].replace("/work", "/user") for path in READS}
    assert {path.replace("/work", "/user") for path in named} - {
        "/api/slims/{slim_id}",
        "/api/recalls/{recall_id}",
        "/api/sessions/{session_id}/knowledge",
    } == asked


async def test_the_operator_sees_its_own_writes_too(door: Door) -> None:
    saved = await door.post(K, json={**ITEM, "owner": "user:alice"})
    answer = (await door.post("/api/admin/sql", json={"query": "SELECT 1"})).json()
    assert answer["position"] >= saved.json()["position"]
    assert answer["degraded"] == []


async def test_nobody_waits_for_what_others_wrote(door: Door) -> None:
    async with door.desk.projector.paused():
        await door.post(K, json=ITEM, headers=ALICE)
        answer = await door.get(K, headers=BOB)
        assert (answer.status_code, answer.json()["degraded"]) == (200, [])


async def test_a_position_that_somebody_was_told_is_seen_as_ones_own(door: Door) -> None:
    saved = await door.post(K, json={**ITEM, "scopes": ["public"]}, headers=ALICE)
    seen = {**BOB, "X-Ledger-Position": str(saved.json()["position"])}
    assert (await door.get(f"{K}/mine", headers=seen)).status_code == 200
    async with door.desk.projector.paused():
        seen["X-Ledger-Position"] = str(saved.json()["position"] + 1)
        answer = await door.get(f"{K}?wait=0.01", headers=seen)
        assert [each["part"] for each in answer.json()["degraded"]] == ["view"]
    refusal(await door.get(K, headers={**BOB, "X-Ledger-Position": "soon"}), 422, "invalid_payload")


async def test_a_read_that_names_a_position_still_fails_without_it(door: Door) -> None:
    async with door.desk.projector.paused():
        saved = await door.post(K, json=ITEM, headers=ALICE)
        answer = await door.get(f"{K}?wait=0.01&min_position={saved.json()['position']}", headers=ALICE)
        refusal(answer, 503, "view_behind")


async def test_a_search_does_not_wait_for_the_recall_of_the_one_before(door: Door) -> None:
    await door.saved(ALICE, task="the lamp")
    async with door.desk.projector.paused():
        for _ in range(2):
            answer = (await door.get(f"{K}/search?q=lamp", headers=ALICE)).json()
            assert answer["recall_id"] is not None
            assert answer["degraded"] == []


async def test_a_person_sees_what_was_written_with_an_agent_and_the_agent_what_the_person_wrote(door: Door) -> None:
    together = {**ALICE, "X-Ledger-Agent": "scribe", "X-Ledger-Org": "acme"}
    for writes, reads, waits in (
        (ALICE, together, True),
        (together, ALICE, True),
        (together, {"X-Ledger-Org": "acme"}, False),  # or all of an organization would wait for each other
    ):
        async with door.desk.projector.paused():
            await door.post(K, json={"task": "t", "content": "c", "types": ["tool"]}, headers=writes)
            answer = await door.get(f"{K}?wait=0", headers=reads)
            assert bool(answer.json()["degraded"]) is waits
        await door.get(K, headers=writes)


async def test_a_search_whose_vectors_are_late_says_which_part_it_lacks(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(_position: int, _timeout: float) -> None:
        raise ViewBehind("the vectors are at position 0", position=0)

    monkeypatch.setattr(door.desk.searcher, "wait_for", late)
    await door.saved(ALICE, task="the lamp")
    for path in (f"{K}/search?q=lamp", "/api/recall/startup?q=lamp"):
        answer = (await door.get(path, headers=ALICE)).json()
        assert [(each["part"], each["position"]) for each in answer["degraded"]] == [("vectors", 0)]
        assert answer["count"] == 1
    assert (await door.get(K, headers=ALICE)).json()["degraded"] == []  # a list needs no vectors


async def test_tokens_do_not_wait_for_each_other() -> None:
    own = OwnWrites()
    speaks(Writer("a", ("user:mei", "agent:scribe")))
    own.appended([NewEvent(KnowledgeRetired(), "k", "user:mei", "o")], [Appended(7, "e")])
    assert own.of(Writer("a", ("agent:scribe",))).view == 7
    assert own.of(Writer("b", ("user:mei", "agent:scribe"))) == NOTHING


async def test_what_was_seen_is_searched_also_by_who_has_judged_something_since() -> None:
    own, reader = OwnWrites(), Writer("t", ("user:mei",))
    speaks(reader)
    own.appended([NewEvent(KnowledgeRated(verdict="helpful", case=Case()), "k", "user:mei", "o")], [Appended(9, "e")])
    assert own.of(reader) == Written(9, 0)
    own.saw(8)
    assert own.of(reader) == Written(9, 8)


WRITES: list[tuple[str, str, Any]] = [
    ("POST", f"{K}/batch", {"items": [ITEM]}),
    ("PUT", f"{K}/older", {"add_helpful_case": {}}),
    ("PUT", f"{K}/older", {"update_score": 5}),
    ("PUT", f"{K}/older", {"content": "anew"}),
    ("PUT", f"{K}/older/acl", {"acl": []}),
    ("DELETE", f"{K}/older", None),
    ("POST", f"{K}/batch_update", {"feedback_list": [{"knowledge_id": "older", "is_helpful": True}]}),
    ("POST", "/api/resource", RESOURCE),
    ("POST", "/api/documents", DOCUMENT),
    ("PUT", f"{M}/work", {"content": {}}),
    ("PATCH", f"{M}/user", {"content": {}}),
    ("POST", "/api/goals/light/focus", {"description": "lamp"}),
    ("POST", f"{K}/slim", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), WRITES)
async def test_every_write_is_seen(door: Door, method: str, path: str, body: Any) -> None:
    await door.saved(ALICE, id="older", task="an older lamp")
    wrote = await door.request(method, path, json=body, headers=ALICE)
    assert wrote.status_code < 300, wrote.text
    head = await door.head()
    answer = await door.get(K, headers=ALICE)
    assert answer.json()["position"] >= head, answer.text


async def test_the_memory_of_writers_is_bounded_and_a_tokens_own() -> None:
    own = OwnWrites(most=3)
    for number in range(1, 6):
        speaks(Writer("t", (f"user:u{number}",)))
        own.appended([NewEvent(KnowledgeRetired(), "k", "user:u", "o")], [Appended(number, "e")])
    assert own.of(Writer("t", ("user:u1",))) == NOTHING
    assert own.of(Writer("t", ("user:u5",))) == Written(5, 5)
    assert own.of(Writer("another", ("user:u5",))) == NOTHING
