"""Whatever is wrong, each endpoint says which code, what to do, and leaves the log as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from kledger.contract.seal_mark import MARK
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.doors.one_app import app_of
from tests.doors.test_http_parameters import routes

ROUTES = list(routes(app_of(None)))  # type: ignore[arg-type]  # None describes the app
GOOD = {"task": "t", "content": "c", "types": ["tool"]}
FACT = {"layer": "semantic", "content": "c"}
PUBLIC = "public-item"
PRIVATE = "bobs-secret"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(BOB, id=PUBLIC, scopes=["public"])
        await opened.saved(BOB, id=PRIVATE)
        await opened.client.put("/api/v1/memories/user", json={"content": {}}, headers={"X-Ledger-User": "carol"})
        await opened.client.delete("/api/v1/memories/user", headers={"X-Ledger-User": "carol"})
        await opened.desk.view.wait_for(await opened.head())
        yield opened


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value}
    return value


K, M = "/api/knowledge", "/api/v1/memories"
CAROL = {"X-Ledger-User": "carol"}
UNSEEN = " \u200b\u3000\t"
EPISODE, STEPS = {"layer": "episodic"}, {"layer": "procedural", "name": "n"}
# what is asked, what is sent, who asks, the status and code, and a word that the message has to say
CASES: list[tuple[str, str, Any, dict[str, str], int, str, str]] = [
    # a value that may have several forms
    ("POST", "/api/memory", {**FACT, "tags": [""]}, ALICE, 422, "invalid_payload", "fit: tags.0 is empty"),
    ("POST", "/api/memory", {**FACT, "tags": "a"}, ALICE, 422, "invalid_payload", "tags has to be an object or a list"),
    ("POST", "/api/memory/recall", {"message": "m", "as_of": 1.5}, ALICE, 422, "invalid_payload", "whole number or a"),
    # a text that shows nothing
    ("POST", K, {**GOOD, "content": UNSEEN}, ALICE, 422, "invalid_payload", "content says nothing"),
    ("PUT", f"{K}/{PUBLIC}", {"content": UNSEEN}, BOB, 422, "invalid_payload", "content says nothing"),
    ("PUT", f"{K}/{PUBLIC}", {"evolve_feedback": UNSEEN}, BOB, 422, "invalid_payload", "feedback says nothing"),
    ("POST", "/api/memory", {**FACT, "content": UNSEEN}, ALICE, 422, "invalid_payload", "content says nothing"),
    ("POST", "/api/memory", {**EPISODE, "event": UNSEEN}, ALICE, 422, "invalid_payload", "event says nothing"),
    ("POST", "/api/memory", {**STEPS, "steps": ["a", UNSEEN]}, ALICE, 422, "invalid_payload", "steps.1 says nothing"),
    ("POST", "/api/memory", {**STEPS, "trigger": UNSEEN}, ALICE, 422, "invalid_payload", "trigger says nothing"),
    ("POST", "/api/memory", {"layer": "procedural", "name": UNSEEN}, ALICE, 422, "invalid_payload", "says nothing"),
    ("POST", "/api/documents", {"title": "t", "text": UNSEEN}, ALICE, 422, "invalid_payload", "text says nothing"),
    ("POST", f"{K}/extract", {"text": UNSEEN}, ALICE, 422, "invalid_payload", "text says nothing"),
    ("POST", "/api/goals/g/focus", {"description": UNSEEN}, ALICE, 422, "invalid_payload", "description says nothing"),
    ("POST", "/api/resource", {"id": "a/b", "title": UNSEEN}, ALICE, 422, "invalid_payload", "title says nothing"),
    ("GET", f"{K}/search?q=%E2%80%8B", None, ALICE, 422, "invalid_payload", "empty"),
    # saving
    ("POST", K, {"task": "t", "types": ["tool"]}, ALICE, 422, "invalid_payload", "content is required"),
    ("POST", K, {**GOOD, "contnet": "x"}, ALICE, 422, "invalid_payload", "contnet is not a field"),
    ("POST", K, {**GOOD, "types": "tool"}, ALICE, 422, "invalid_payload", "types"),
    ("POST", K, {**GOOD, "types": ["Tool!"]}, ALICE, 422, "invalid_payload", "types.0"),
    ("POST", K, {"task": "t", "content": "c"}, ALICE, 422, "invalid_payload", "name at least one kind"),
    ("POST", K, {**GOOD, "type": "plan"}, ALICE, 422, "invalid_payload", "state one of the two"),
    ("POST", K, {**GOOD, "score": 6}, ALICE, 422, "invalid_payload", "score"),
    ("POST", K, {**GOOD, "score": "4"}, ALICE, 422, "invalid_payload", "score"),
    ("POST", K, {**GOOD, "content": ""}, ALICE, 422, "invalid_payload", "content"),
    ("POST", K, {**GOOD, "content": "a\0b"}, ALICE, 422, "invalid_payload", "content holds a NUL"),
    ("POST", K, {**GOOD, "tags": {"a": ["x\0"]}}, ALICE, 422, "invalid_payload", "tags.a.0 holds a NUL"),
    ("POST", K, {**GOOD, "tags": {"n": 2**63}}, ALICE, 422, "invalid_payload", "integer beyond 64 bits"),
    ("POST", K, {**GOOD, "tags": {"n": [10**30]}}, ALICE, 422, "invalid_payload", "tags.n.0 holds an integer beyond"),
    ("PUT", f"{M}/user", {"content": {"n": -(10**30)}}, ALICE, 422, "invalid_payload", "integer beyond 64 bits"),
    ("POST", K, {**GOOD, "tags": deep(40)}, ALICE, 422, "invalid_payload", "nested more than"),
    ("POST", K, {**GOOD, "tags": ["x"]}, ALICE, 422, "invalid_payload", "tags"),
    ("POST", K, {**GOOD, "id": "a\nb"}, ALICE, 422, "invalid_payload", "printable"),
    ("POST", K, {**GOOD, "id": "x" * 201}, ALICE, 422, "invalid_payload", "id"),
    ("POST", K, {**GOOD, "id": "sealed:v1:evil"}, ALICE, 422, "invalid_payload", "id"),
    ("POST", K, {**GOOD, "source": {"nmae": "x"}}, ALICE, 422, "invalid_payload", "source.nmae"),
    ("POST", K, {**GOOD, "id": "i", "source": {"agent_id": f"{MARK}x"}}, ALICE, 422, "invalid_payload", "begins with"),
    ("POST", K, {**GOOD, "id": "i"}, {"X-Ledger-Agent": f"{MARK}x"}, 422, "invalid_payload", "begins with"),
    ("POST", K, {**GOOD, "eval": {"helpful_history": [{}]}}, ALICE, 422, "invalid_payload", "history"),
    ("POST", K, {**GOOD, "visibility": "public"}, ALICE, 422, "invalid_payload", "leave it out"),
    ("POST", K, {**GOOD, "scopes": ["alice"]}, ALICE, 422, "illegal_scope", "write public, or an entity as {type}"),
    ("POST", K, {**GOOD, "scopes": ["user:" + "x" * 300]}, ALICE, 422, "illegal_scope", "scopes.0"),
    ("POST", K, {**GOOD, "owner": "public"}, ALICE, 422, "illegal_scope", "owner"),
    ("POST", K, {**GOOD, "owner": "user:bob"}, ALICE, 403, "not_owner", "ask as user:bob"),
    ("POST", K, {**GOOD, "id": PUBLIC}, ALICE, 409, "knowledge_exists", "choose another id"),
    ("POST", K, {**GOOD, "content": "x" * 1_050_000}, ALICE, 413, "payload_too_large", "allowed"),
    ("POST", K, {**GOOD, "content": "x" * 2_200_000}, ALICE, 413, "payload_too_large", "limit"),
    ("POST", K, b'{"task": ', ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K, b'{"task": NaN}', ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K, b'{"task": "\\ud800"}', ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K, b'{"task": "\xff"}', ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K, b"[" * 100_000, ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K, b"", ALICE, 422, "invalid_payload", "the body is empty: send a JSON object as application/json"),
    ("POST", K, b"[]", ALICE, 422, "invalid_payload", "the body does not fit"),
    # who asks
    ("POST", K, GOOD, {"X-Ledger-User": ""}, 422, "illegal_scope", "or leave it out"),
    ("POST", K, GOOD, {"X-Ledger-Usr": "alice"}, 422, "invalid_payload", "known are"),
    ("POST", K, GOOD, {"X-User": "alice"}, 422, "invalid_payload", "who asks is named in X-Ledger-User"),
    ("POST", K, GOOD, {"X-Agent-Id": "scribe"}, 422, "invalid_payload", "who asks is named in X-Ledger-Agent"),
    ("GET", f"{K}/search?q=x", None, {"Ledger-Org": "o"}, 422, "invalid_payload", "who asks is named in X-Ledger-Org"),
    ("POST", K, GOOD, {"X-Kledger-User": "alice"}, 422, "invalid_payload", "known are x-ledger-user"),
    ("GET", K, None, {"X-Kledger-Agent": "scribe"}, 422, "invalid_payload", "known are x-ledger-user"),
    ("POST", K, GOOD, {"X-Ledger-User": "%ff"}, 422, "illegal_scope", "percent-encoded"),
    ("POST", K, GOOD, {"X-Ledger-User": "a%00b"}, 422, "illegal_scope", "not an entity"),
    ("POST", K, GOOD, {**ALICE, "X-Ledger-Trace-Id": "x" * 600}, 422, "invalid_payload", "shorten"),
    ("POST", K, GOOD, {**ALICE, "Idempotency-Key": ""}, 422, "invalid_payload", "UUID"),
    ("POST", K, GOOD, {**ALICE, "Origin": "https://example.com"}, 403, "not_owner", "another site"),
    ("POST", K, GOOD, {**ALICE, "Host": "example.com"}, 403, "not_owner", "http://127.0.0.1"),
    # many at once
    ("POST", K + "/batch", {"items": []}, ALICE, 422, "invalid_payload", "items"),
    ("POST", K + "/batch", {"items": [GOOD] * 1_001}, ALICE, 422, "invalid_payload", "items"),
    ("POST", K + "/batch", {"items": ["x"]}, ALICE, 422, "invalid_payload", "items.0"),
    ("POST", K + "/batch", {"itmes": [GOOD]}, ALICE, 422, "invalid_payload", "itmes"),
    ("POST", K + "/batch", b"{", ALICE, 400, "bad_json", "not valid JSON"),
    ("POST", K + "/batch", b"x" * 68_000_000, ALICE, 413, "payload_too_large", "send less"),
    ("POST", K + "/batch_update", {"feedback_list": {}}, ALICE, 422, "invalid_payload", "feedback_list"),
    ("POST", K + "/batch_update", {}, ALICE, 422, "invalid_payload", "feedback_list is required"),
    # judging and revising
    ("PUT", f"{K}/none", {"update_score": 4}, ALICE, 404, "unknown_knowledge", "check the id"),
    ("PUT", f"{K}/{PRIVATE}", {"update_score": 4}, ALICE, 404, "unknown_knowledge", "check the id"),
    ("PUT", f"{K}/{PRIVATE}", {"content": "x"}, ALICE, 404, "unknown_knowledge", "check the id"),
    ("PUT", f"{K}/{PUBLIC}", {"content": "x"}, ALICE, 403, "not_owner", "ask as user:bob"),
    ("PUT", f"{K}/{PUBLIC}", {}, BOB, 422, "invalid_payload", "changes nothing"),
    ("PUT", f"{K}/{PUBLIC}", {"reason": "x"}, BOB, 422, "invalid_payload", "changes nothing"),
    ("PUT", f"{K}/{PUBLIC}", {"update_score": 0}, BOB, 422, "invalid_payload", "update_score"),
    ("PUT", f"{K}/{PUBLIC}", {"update_score": 4, "expected_version": 1}, BOB, 422, "invalid_payload", "leave"),
    ("PUT", f"{K}/{PUBLIC}", {"add_helpful_case": {"otcome": "x"}}, BOB, 422, "invalid_payload", "otcome"),
    ("PUT", f"{K}/{PUBLIC}", {"scopes": ["x"]}, BOB, 422, "illegal_scope", "scopes.0"),
    ("PUT", f"{K}/{PUBLIC}", {"scopes": []}, BOB, 422, "invalid_payload", "scopes"),
    ("PUT", f"{K}/{PUBLIC}", {"content": "x", "expected_version": 2}, BOB, 409, "version_conflict", "version 1"),
    ("PUT", f"{K}/{PUBLIC}", {"content": "x" * 1_100_000}, BOB, 413, "payload_too_large", "allowed"),
    ("PUT", f"{K}/{PUBLIC}", {"evolve_feedback": "改进建议"}, BOB, 501, "not_available", "model"),
    ("POST", K + "/slim", {"threshold": 0.1}, ALICE, 422, "invalid_payload", "threshold"),
    ("POST", K + "/slim", {"scopes": ["x"]}, ALICE, 422, "illegal_scope", "scopes"),
    ("POST", K + "/slim", {"owner": "user:bob"}, ALICE, 403, "not_owner", "your own items"),
    ("POST", "/api/slims/none/apply", None, ALICE, 404, "unknown_process", "check the id"),
    ("DELETE", f"{K}/none", None, ALICE, 404, "unknown_knowledge", "check the id"),
    ("DELETE", f"{K}/{PRIVATE}", None, ALICE, 404, "unknown_knowledge", "check the id"),
    ("DELETE", f"{K}/{PUBLIC}", None, ALICE, 403, "not_owner", "ask as user:bob"),
    ("POST", f"{K}/{PUBLIC}/restore", None, BOB, 409, "illegal_state", "is active"),
    ("POST", f"{K}/{PUBLIC}/restore", None, ALICE, 403, "not_owner", "ask as user:bob"),
    # reading
    ("GET", f"{K}/{PRIVATE}", None, ALICE, 404, "unknown_knowledge", "check the id"),
    ("GET", f"{K}/{PRIVATE}/history", None, ALICE, 404, "unknown_knowledge", "check the id"),
    ("GET", f"{K}/%ff", None, ALICE, 422, "invalid_payload", "percent-encoded"),
    ("GET", f"{K}?as_of=999", None, ALICE, 422, "invalid_payload", "the head of the log, which is"),
    ("GET", f"{K}?as_of=99999999999999999999", None, ALICE, 422, "invalid_payload", "as_of"),
    ("GET", f"{K}?as_of=2999-01-01T00:00:00Z", None, ALICE, 422, "invalid_payload", "yet to come"),
    ("GET", f"{K}?as_of=yesterday", None, ALICE, 422, "invalid_payload", "write 42"),
    ("GET", f"{K}?as_of=2026-01-01T00:00:00", None, ALICE, 422, "invalid_payload", "offset"),
    ("GET", f"{K}?limit=0", None, ALICE, 422, "invalid_payload", "limit"),
    ("GET", f"{K}?limit=1001", None, ALICE, 422, "invalid_payload", "limit"),
    ("GET", f"{K}?types=A", None, ALICE, 422, "invalid_payload", "types"),
    ("GET", f"{K}?scopes=bob", None, ALICE, 422, "illegal_scope", "write public, or an entity as {type}"),
    ("GET", f"{K}?owner=bob", None, ALICE, 422, "illegal_scope", "write {type}:{id}"),
    ("GET", f"{K}?status=gone", None, ALICE, 422, "invalid_payload", "status"),
    ("GET", f"{K}?min_position=999&wait=0.01", None, ALICE, 503, "view_behind", "999"),
    ("GET", f"{K}/search", None, ALICE, 422, "invalid_payload", "q is required"),
    ("GET", f"{K}/search?q=%20", None, ALICE, 422, "invalid_payload", "empty"),
    ("GET", f"{K}/search?q=a%00", None, ALICE, 422, "invalid_payload", "NUL"),
    ("GET", f"{K}/search?q=a&top_k=101", None, ALICE, 422, "invalid_payload", "top_k"),
    ("GET", f"{K}/search?q=a&paths=guess", None, ALICE, 422, "invalid_payload", "paths"),
    ("GET", f"{K}/search?q=a&as_of=999", None, ALICE, 422, "invalid_payload", "the head of the log"),
    ("GET", "/api/lineage", None, ALICE, 422, "invalid_payload", "ref is required"),
    ("GET", f"/api/lineage?ref={PRIVATE}", None, ALICE, 404, "unknown_reference", "trace:ID"),
    ("GET", "/api/lineage?ref=trace:none", None, ALICE, 404, "unknown_reference", "trace:ID"),
    # memories
    ("GET", M, None, {"X-Ledger-Team": "t"}, 422, "invalid_payload", "X-Ledger-User"),
    ("POST", M, None, {"X-Ledger-Agent": "a"}, 422, "invalid_payload", "X-Ledger-User"),
    ("PUT", M + "/user", {"content": {}}, {"X-Ledger-Org": "o"}, 422, "invalid_payload", "X-Ledger-User"),
    ("PUT", M + "/user", {"content": {"ocupation": "x"}}, ALICE, 422, "invalid_payload", "ocupation"),
    ("PUT", M + "/user", {"occupation": "x"}, ALICE, 422, "invalid_payload", "content is required"),
    ("PUT", M + "/user", {"content": {"people": [{"role": "x"}]}}, ALICE, 422, "invalid_payload", "people.0.name"),
    ("PATCH", M + "/work", {"content": {"work_habits": {"nots": None}}}, ALICE, 422, "invalid_payload", "nots"),
    ("PATCH", M + "/work", {"content": {"expertise": "x"}}, ALICE, 422, "invalid_payload", "expertise"),
    ("PATCH", M + "/user", {"content": {"occupation": "x"}}, CAROL, 409, "illegal_state", "PUT it"),
    ("PATCH", M + "/user", b"{", ALICE, 400, "bad_json", "not valid JSON"),
    ("PUT", M + "/work", {"content": {"team_context": "x" * 1_100_000}}, ALICE, 413, "payload_too_large", "allowed"),
    ("GET", M + "/user/history", None, ALICE, 404, "unknown_profile", "begins it"),
    ("DELETE", M + "/user", None, CAROL, 409, "illegal_state", "disabled already"),
    # the operator's
    ("GET", "/api/admin/status", None, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/rebuild", None, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/verify", None, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/snapshot", None, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/replay", {"into": "/tmp/x"}, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/replay", {"into": "x.duckdb"}, {}, 422, "invalid_payload", "absolute"),
    ("POST", "/api/admin/replay", {"to": "soon", "into": "/tmp/x"}, {}, 422, "invalid_payload", "write 42"),
    ("POST", "/api/admin/replay", {"to": 999, "into": "/tmp/x"}, {}, 422, "invalid_payload", "the head of the log"),
    (
        "POST",
        "/api/admin/replay",
        {"to": "2999-01-01T00:00:00Z", "into": "/tmp/x"},
        {},
        422,
        "invalid_payload",
        "to 2999",
    ),
    ("POST", "/api/admin/sql", {"query": "DROP TABLE x"}, {}, 400, "illegal_query", "SELECT"),
    ("POST", "/api/admin/sql", {"query": "SELECT 1"}, ALICE, 403, "not_owner", "without an identity"),
    ("GET", "/api/admin/models", None, ALICE, 403, "not_owner", "without an identity"),
    ("POST", "/api/admin/models/try", None, ALICE, 403, "not_owner", "without an identity"),
    ("GET", "/api/admin/attach", None, ALICE, 403, "not_owner", "without an identity"),
    ("GET", "/api/admin/refused?code=nope", None, {}, 422, "invalid_payload", "ask without a code"),
    ("GET", "/api/admin/refused?code=unfoldabel", None, {}, 422, "invalid_payload", "is unfoldable meant?"),
    ("GET", "/api/admin/refused?code=", None, {}, 422, "invalid_payload", "'' is no code"),
    ("GET", "/api/admin/jobs/none", None, {}, 404, "unknown_reference", "no job"),
    ("GET", "/api/admin/jobs/none", None, ALICE, 403, "not_owner", "without an identity"),
    # what is not there
    ("GET", "/api/nothing", None, {}, 404, "unknown_route", "/openapi.json"),
    ("GET", "/api/search?q=x", None, {}, 404, "unknown_route", "is /api/knowledge/search meant?"),
    ("GET", "/API/Knowledge/", None, {}, 404, "unknown_route", "is /api/knowledge meant?"),
    ("POST", "/api/memories", {}, {}, 404, "unknown_route", "is /api/memory meant?"),
    ("GET", "/healthz", None, {}, 404, "unknown_route", "is /health meant?"),
    (
        "GET",
        "/api/session/s-1/messages",
        None,
        {},
        404,
        "unknown_route",
        "is /api/sessions/{session_id}/messages meant?",
    ),
    (
        "POST",
        f"{K}/{PUBLIC}/rate",
        {},
        {},
        404,
        "unknown_route",
        "/public-item/rate: /openapi.json lists",
    ),
    ("PATCH", K, {}, {}, 405, "method_not_allowed", "does not take PATCH: it takes GET, HEAD, POST"),
]


async def test_every_bad_request_is_refused_with_its_code_and_changes_nothing(door: Door) -> None:
    head = await door.head()
    for method, path, body, who, status, code, word in CASES:
        headers = {"Content-Type": "application/json", **who}
        if isinstance(body, bytes):
            answer = await door.request(method, path, content=body, headers=headers)
        else:
            answer = await door.request(method, path, json=body, headers=who)
        case = f"{method} {path} {str(body)[:80]}: {answer.text[:300]}"
        assert answer.status_code == status, case
        assert word in refusal(answer, status, code), case
        assert not any(each in answer.text for each in ("Input should", "is wrong: ", "instance of")), case
        assert await door.head() == head, case
    assert not door.desk.admin.asked


def taken_for_an_id() -> list[tuple[str, str, str]]:
    """Requests with the path of an endpoint and the method of another one, which takes the path's end for an id."""
    each_route = [route for route in ROUTES if isinstance(route, APIRoute)]
    plain = {(method, route.path) for route in each_route if "{" not in route.path for method in route.methods or ()}
    paths = {path for _, path in plain}
    return sorted(
        (method, path, other)
        for route in each_route
        for method in (route.methods or set()) & {"GET", "DELETE"}
        for path in paths
        if "{" in route.path and (method, path) not in plain and route.path_regex.match(path)
        for other in {each for each, its in plain if its == path}
    )


async def test_a_path_with_the_method_of_another_endpoint_is_told_the_one_that_it_names(door: Door) -> None:
    asked = taken_for_an_id()
    assert ("GET", "/api/memory/recall", "POST") in asked
    for method, path, other in asked:
        for query in ("", "?message=x"):
            told = (await door.request(method, path + query, headers=ALICE)).json()["error"]["message"]
            assert f"or is {other} {path} meant?" in told, (method, path, told)


async def test_a_request_that_names_its_own_endpoint_is_told_no_other(door: Door) -> None:
    body = {"layer": "semantic", "content": "The quay is open.", "supersedes": "never-saved"}
    answer = await door.request("POST", "/api/memory", json=body, headers=ALICE)
    assert "meant?" not in refusal(answer, 404, "unknown_knowledge")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (f"recall-{'0f' * 16}", "recall"),
        (f"evolution-{'0f' * 8}", "evolution"),
        (f"conflict-{'0f' * 8}", "conflict"),
    ],
)
async def test_the_id_of_something_else_is_told_as_what_it_looks_like(door: Door, given: str, kind: str) -> None:
    verdict = {"add_helpful_case": {"task": "a"}}
    for method, path, body in (("GET", f"{K}/{given}", None), ("PUT", f"{K}/{given}", verdict)):
        answer = await door.request(method, path, json=body, headers=ALICE)
        assert f"looks like the id of a{'n' * (kind[0] in 'ae')} {kind}" in refusal(answer, 404, "unknown_knowledge")
    told = refusal(await door.get(f"/api/memory/{given}", headers=ALICE), 404, "unknown_knowledge")
    assert f"looks like the id of a{'n' * (kind[0] in 'ae')} {kind}" in told


async def test_a_body_that_is_not_said_to_be_json_is_refused(door: Door) -> None:
    head = await door.head()
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = await door.post("/api/knowledge", content=b"{}", headers={"Content-Type": kind})
        assert "Content-Type: application/json" in refusal(answer, 400, "bad_json")
    assert await door.head() == head


async def test_verdicts_of_a_batch_are_refused_one_by_one(door: Door) -> None:
    verdicts = [
        {"knowledge_id": PUBLIC, "is_helpful": True},
        {"knowledge_id": PRIVATE, "is_helpful": True},
        {"knowledge_id": PUBLIC, "is_helpful": "yes"},
        {"knowledge_id": PUBLIC, "is_helpful": False, "case": {"outcome": "bad"}},
        {"is_helpful": False},
    ]
    answer = await door.post("/api/knowledge/batch_update", json={"feedback_list": verdicts}, headers=ALICE)
    told = answer.json()
    assert told["updated"] == 2
    assert [(r["index"], r["knowledge_id"], r["error"]["code"]) for r in told["refused"]] == [
        (1, PRIVATE, "unknown_knowledge"),
        (2, PUBLIC, "invalid_payload"),
        (4, None, "invalid_payload"),
    ]
    assert told["position"] == await door.head()


async def test_one_item_too_large_does_not_hold_up_its_batch(door: Door) -> None:
    items = [{**GOOD, "id": "small"}, {**GOOD, "id": "large", "content": "x" * 1_100_000}]
    told = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert [r["outcome"] for r in told["results"]] == ["saved", "refused"]
    assert told["results"][1]["error"]["code"] == "payload_too_large"


async def test_what_fails_inside_is_told_without_its_cause() -> None:
    async with http_door() as door:

        async def fails() -> None:
            raise RuntimeError("a secret of the inside")

        door.desk.admin.status = fails  # type: ignore[assignment, method-assign]  # anything may fail
        answer = await door.get("/api/admin/status")
        assert "secret" not in refusal(answer, 500, "internal_error")


async def test_a_node_off_loopback_takes_any_host_and_still_no_other_sites_pages() -> None:
    async with http_door(on_loopback=False) as door:
        assert (await door.get("/health", headers={"Host": "ledger.example"})).status_code == 200
        answer = await door.get("/health", headers={"Host": "ledger.example", "Origin": "https://example.com"})
        refusal(answer, 403, "not_owner")
        own = {"Host": "ledger.example", "Origin": "https://ledger.example"}
        assert (await door.get("/health", headers=own)).status_code == 200


async def test_a_line_with_many_unknown_fields_is_told_once_which_there_are(door: Door) -> None:
    line = {**GOOD, "hash": "x", "metadata": {}, "user_id": "alice"}
    answer = await door.post("/api/knowledge/batch", json={"items": [line]})
    told = answer.json()["results"][0]["error"]["message"]
    assert told.count("supersedes") == 1, told
    for name in ("hash", "metadata", "user_id"):
        assert f"{name} is not a field here" in told


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("/api/knowledge/search?query=x", "has no parameter 'query' (here it is q): it has as_of, "),
        ("/api/knowledge/search?q=x&limit=3", "has no parameter 'limit' (here it is top_k): it has as_of, "),
        ("/api/knowledge?top_k=3&stat=x", "has no parameter 'top_k' (here it is limit), 'stat': it has as_of, "),
        ("/api/knowledge?user_id=bob", "has no parameter 'user_id' (here it is owner, written user:ID): it has "),
        ("/api/lineage?id=k-1", "has no parameter 'id' (here it is ref): it has "),
    ],
)
async def test_a_parameter_that_is_called_otherwise_here_is_told_how(door: Door, asked: str, told: str) -> None:
    assert told in refusal(await door.get(asked, headers=BOB), 422, "invalid_payload")


@pytest.mark.parametrize(
    ("method", "path", "sent", "told"),
    [
        ("POST", K, {"task": "t", "contents": "c", "types": ["tool"]}, "contents is not a field here: there are "),
        ("PUT", f"{K}/{PUBLIC}", {"verdict": "helpful"}, "add_helpful_case, "),
        ("POST", "/api/memory", {**FACT, "kinds": "x"}, "kinds is not a field here: there are "),
        ("POST", "/api/memory/recall", {"wuery": "q"}, "there are message, "),
        ("POST", "/api/memory/recall", {"query": "q"}, "query is not a field here: here it is message"),
        ("POST", K, {**GOOD, "metadata": {}}, "metadata is not a field here: here it is tags"),
        ("POST", K, {**GOOD, "user_id": "bob"}, "user_id is not a field here: here it is owner, written user:ID"),
        ("POST", "/api/knowledge/batch", {"items": [{**GOOD, "agent_id": "a"}]}, "here it is owner, written agent:ID"),
        ("POST", K, {**GOOD, "source": {"trce_id": "t"}}, "source.trce_id is not a field here: there are name, "),
        ("PUT", f"{K}/{PUBLIC}", {"add_helpful_case": {"tsk": "t"}}, "add_helpful_case.tsk is not a field here: there"),
        (
            "POST",
            "/api/sessions/s-1/messages",
            {"messages": [{"id": "m", "role": "user", "contnt": "c"}]},
            "messages.0.contnt is not a field here: there are id, role, name, content, ",
        ),
        (
            "PUT",
            "/api/v1/memories/user",
            {"content": {"preferences": {"stile": "s"}}},
            "there are communication_style, ",
        ),
        ("POST", "/api/knowledge/batch", {"items": [{**GOOD, "source": {"trce_id": "t"}}]}, "there are name, "),
    ],
)
async def test_a_body_with_an_unknown_field_is_told_which_there_are(
    door: Door, method: str, path: str, sent: dict[str, Any], told: str
) -> None:
    answer = await door.client.request(method, path, json=sent, headers=BOB)
    if path.endswith("batch"):
        assert told in answer.json()["results"][0]["error"]["message"]
        return
    refusal(answer, 422, "invalid_payload")
    assert told in answer.json()["error"]["message"]


async def test_a_header_that_names_somebody_elsewhere_is_read_over_where_one_of_ours_does(door: Door) -> None:
    assert (await door.get(K, headers={**BOB, "X-User": "alice"})).status_code == 200


async def test_a_page_is_shown_whatever_a_proxy_adds_to_its_request() -> None:
    async with http_door() as door:
        assert (await door.get("/ui/sign-in", headers={"X-User": "alice"})).status_code == 200
