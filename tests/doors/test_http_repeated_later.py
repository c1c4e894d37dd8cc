"""A key is compared with the log where the node that took it has forgotten, was started again, or is another one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from producers.http.app import routes_of
from producers.http.identity import IDEMPOTENCY_KEY
from tests.doors.furnished import KEY, K, M, R, asked_later, furnished_door, told
from tests.doors.http_door import ALICE, Door, refusal
from tests.doors.one_app import app_of

D, E, S = "/api/documents", "/api/evolutions", "/api/slims"
ITEM = {"task": "fix the lamp", "content": "turn the fuse", "types": ["tool"]}
OPERATOR: dict[str, str] = {}
LOOK, OTHER_LOOK = {"acl": [{"entity": "user:bob"}]}, {"acl": [{"entity": "user:eve"}]}
RETIRED = {"action": "retire", "ids": ["older"], "dry_run": False, "reason": "a"}
SHARED = {"action": "share", "ids": ["older"], "dry_run": False, "readers": ["user:bob"]}
FUSE = {"id": "fuse", "title": "The fuse", "body": "b", "secure_body": "one-two"}


def verdict(helpful: bool, item: str = "older", **case: str) -> dict[str, Any]:
    return {"feedback_list": [{"knowledge_id": item, "is_helpful": helpful, **({"case": case} if case else {})}]}


# What is asked first, and what is asked later with the same key: body, or what is said in the address.
WRITES: dict[str, tuple[str, str, Any, str, Any]] = {
    "save": ("POST", K, ITEM, K, {**ITEM, "content": "leave the fuse"}),
    "save with an id": ("POST", K, {**ITEM, "id": "named"}, K, {**ITEM, "id": "named", "task": "other"}),
    "revise": ("PUT", f"{K}/older", {"content": "anew"}, f"{K}/older", {"content": "otherwise"}),
    "score": ("PUT", f"{K}/older", {"update_score": 5}, f"{K}/older", {"update_score": 4}),
    "why a score": (
        "PUT", f"{K}/older", {"update_score": 5, "reason": "a"}, f"{K}/older", {"update_score": 5, "reason": "b"},
    ),
    "rate": (
        "PUT", f"{K}/older", {"add_helpful_case": {"reason": "a"}}, f"{K}/older", {"add_helpful_case": {"reason": "b"}},
    ),
    "rate many": ("POST", f"{K}/batch_update", verdict(True), f"{K}/batch_update", verdict(False)),
    "rate many for a reason": (
        "POST", f"{K}/batch_update", verdict(True, reason="a"), f"{K}/batch_update", verdict(True, reason="b"),
    ),
    "rate many of another": (
        "POST", f"{K}/batch_update", verdict(True), f"{K}/batch_update", verdict(True, "newer"),
    ),
    "remember": (
        "POST", "/api/memory", {"layer": "short", "kind": "mood", "content": "content"},
        "/api/memory", {"layer": "short", "kind": "decision", "content": "content"},
    ),
    "confirm": (
        "POST", "/api/memory/mood/confirm", {"case": {"reason": "a"}},
        "/api/memory/mood/confirm", {"case": {"reason": "b"}},
    ),
    "share": ("PUT", f"{K}/older/acl", LOOK, f"{K}/older/acl", OTHER_LOOK),
    "revert": ("POST", f"{K}/revised/revert", {"to_version": 1}, f"{K}/revised/revert", {"to_version": 2}),
    "retire": ("DELETE", f"{K}/older?reason=a", None, f"{K}/older?reason=b", None),
    "restore": ("POST", f"{K}/retired/restore?reason=a", None, f"{K}/retired/restore?reason=b", None),
    "bulk": ("POST", f"{K}/bulk", RETIRED, f"{K}/bulk", {**RETIRED, "reason": "b"}),
    "bulk of others": ("POST", f"{K}/bulk", RETIRED, f"{K}/bulk", {**RETIRED, "ids": ["newer"]}),
    "another bulk": ("POST", f"{K}/bulk", RETIRED, f"{K}/bulk", {**SHARED, "ids": ["older"]}),
    "bulk shared with others": ("POST", f"{K}/bulk", SHARED, f"{K}/bulk", {**SHARED, "readers": ["user:eve"]}),
    "resource": ("POST", R, FUSE, R, {**FUSE, "title": "Another"}),
    "resource with another secret": ("POST", R, FUSE, R, {**FUSE, "secure_body": "two-one"}),
    "resource without its secret": ("POST", R, FUSE, R, {**FUSE, "secure_body": None}),
    "another resource": ("POST", R, FUSE, R, {**FUSE, "id": "lamp"}),
    "resource for others": ("POST", R, FUSE, R, {**FUSE, "shared_with": ["user:eve"]}),
    "resource retired": ("DELETE", f"{R}/kept?reason=a", None, f"{R}/kept?reason=b", None),
    "resource restored": ("POST", f"{R}/gone/restore?reason=a", None, f"{R}/gone/restore?reason=b", None),
    "document": ("POST", D, {"id": "d", "text": "# A\n\nb"}, D, {"id": "d", "text": "# A\n\nc"}),
    "document with another heading": ("POST", D, {"id": "d", "text": "# A\n\nb"}, D, {"id": "d", "text": "# B\n\nb"}),
    "document of another title": ("POST", D, {"text": "b", "title": "t"}, D, {"text": "b", "title": "u"}),
    "document from elsewhere": ("POST", D, {"text": "b", "url": "https://a"}, D, {"text": "b", "url": "https://b"}),
    "document for others": ("POST", D, {"text": "b"}, D, {"text": "b", "scopes": ["public"]}),
    "another document": ("POST", D, {"id": "d", "text": "b"}, D, {"id": "e", "text": "b"}),
    "document removed": ("DELETE", f"{D}/kept?reason=a", None, f"{D}/kept?reason=b", None),
    "memory": (
        "PUT", f"{M}/work", {"content": {"occupation": "cook"}}, f"{M}/work", {"content": {"occupation": "baker"}},
    ),
    "memory with less": ("PUT", f"{M}/work", {"content": {"occupation": "cook"}}, f"{M}/work", {"content": {}}),
    "memory with people": (
        "PUT", f"{M}/work", {"content": {"team_members": [{"name": "Bo"}]}},
        f"{M}/work", {"content": {"team_members": [{"name": "Jo"}]}},
    ),
    "memory in part": (
        "PATCH", f"{M}/work", {"content": {"occupation": "cook"}}, f"{M}/work", {"content": {"occupation": "baker"}},
    ),
    "memory disabled": ("DELETE", f"{M}/work?reason=a", None, f"{M}/work?reason=b", None),
    "focus": ("POST", "/api/goals/g/focus", {"description": "lamp"}, "/api/goals/g/focus", {"description": "fuse"}),
    "slim": ("POST", f"{K}/slim", {"wait": 0}, f"{K}/slim", {"wait": 0, "dry_run": True}),
    "later version": (
        "POST", "/api/memory", {"layer": "semantic", "content": "c", "supersedes": "older"},
        "/api/memory", {"layer": "semantic", "content": "c", "supersedes": "newer"},
    ),
    "approve": (
        "POST", "/api/memory/proposal/approve", {"reason": "a"},
        "/api/memory/proposal/approve", {"reason": "b"},
    ),
    "reject": (
        "POST", "/api/memory/proposal/reject", {"expected_version": 1},
        "/api/memory/proposal/reject", {"expected_version": 2},
    ),
    "release": (
        "POST", "/api/memory/held/held-1/release", {"reason": "a"},
        "/api/memory/held/held-1/release", {"reason": "b"},
    ),
    "drop": ("POST", "/api/memory/held/held-1/drop", {}, "/api/memory/held/held-1/drop", {"reason": "b"}),
    "roles": (
        "POST", "/api/projects/light/members", {"entity": "agent:a", "roles": ["tester"]},
        "/api/projects/light/members", {"entity": "agent:a", "roles": ["developer"]},
    ),
    "coordinator": (
        "POST", "/api/projects/light/coordinators", {"entity": "agent:a"},
        "/api/projects/light/coordinators", {"entity": "agent:b"},
    ),
    "slim of other scopes": ("POST", f"{K}/slim", {"wait": 0}, f"{K}/slim", {"wait": 0, "scopes": ["public"]}),
    "slim rejected": ("POST", f"{S}/slim-1/reject?reason=a", None, f"{S}/slim-1/reject?reason=b", None),
    "evolution rejected": (
        "POST", f"{E}/evolution-1/reject?reason=a", None, f"{E}/evolution-1/reject?reason=b", None,
    ),
    "conflict": (
        "POST", "/api/conflicts/conflict-1/resolve", {"winner": "older"},
        "/api/conflicts/conflict-1/resolve", {"winner": "newer"},
    ),
    "conflict merged": (
        "POST", "/api/conflicts/conflict-1/resolve", {"winner": "older", "merge": {"content": "both"}},
        "/api/conflicts/conflict-1/resolve", {"winner": "older", "merge": {"content": "all"}},
    ),
    "conflict not merged": (
        "POST", "/api/conflicts/conflict-1/resolve", {"winner": "older"},
        "/api/conflicts/conflict-1/resolve", {"winner": "older", "merge": {"content": "both"}},
    ),
    "type of scope": (
        "POST", "/api/scope_types", {"type": "guild", "priority": 4},
        "/api/scope_types", {"type": "guild", "priority": 3},
    ),
}  # fmt: skip
# All that these say stands in the address, which the key is bound to.
IN_THE_ADDRESS: dict[str, tuple[str, str]] = {
    "evolution applied": ("POST", f"{E}/evolution-1/apply"),
    "evolution reverted": ("POST", f"{E}/evolution-2/revert"),
    "slim applied": ("POST", f"{S}/slim-1/apply?wait=0"),
    "slim reverted": ("POST", f"{S}/slim-2/revert?wait=0"),
}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with furnished_door() as opened:
        yield opened


@pytest.mark.parametrize("what", WRITES)
async def test_another_request_with_the_key_is_refused_after_a_restart_and_the_same_is_answered(
    door: Door, what: str
) -> None:
    method, path, body, other_path, other = WRITES[what]
    who = OPERATOR if what == "type of scope" else ALICE
    first = await door.request(method, path, json=body, headers=who | KEY)
    assert first.is_success, first.text
    head = await door.head()
    refused = await asked_later(door, method, other_path, other, who)
    assert "a key of its own" in refusal(refused, 422, "idempotency_mismatch")
    again = await asked_later(door, method, path, body, who)
    assert told(again) == told(first)
    assert await door.head() == head, "neither states anything"


@pytest.mark.parametrize("what", IN_THE_ADDRESS)
async def test_a_decision_that_is_sent_again_after_a_restart_is_answered_as_before(door: Door, what: str) -> None:
    method, path = IN_THE_ADDRESS[what]
    first = await door.request(method, path, headers=ALICE | KEY)
    assert first.is_success, first.text
    head = await door.head()
    again = await asked_later(door, method, path, None, ALICE)
    assert told(again) == told(first)
    assert await door.head() == head


async def test_every_endpoint_that_takes_a_key_is_asked_here(door: Door) -> None:
    """But for extracting, which needs a model: tests/attacks/test_claimed_processes.py."""
    routes = [
        (method, route.path_regex)
        for route in routes_of(door.desk)
        if isinstance(route, APIRoute) and "retry" in route.endpoint.__annotations__
        for method in route.methods or ()
    ]
    asked = [(method, path.partition("?")[0]) for method, path, *_ in [*WRITES.values(), *IN_THE_ADDRESS.values()]]
    left = {
        place.pattern
        for method, place in routes
        if not any(method == way and place.fullmatch(path) for way, path in asked)
    }
    assert len(routes) > 20
    assert left == {"^/api/knowledge/extract$", "^/api/v1/memories/user$"}, (
        "the user memory is asked as the work memory is"
    )


async def test_the_description_lists_the_key_where_a_request_is_kept_once_by_it(door: Door) -> None:
    document = (await door.get("/openapi.json")).json()
    listed = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if any(one.get("name") == IDEMPOTENCY_KEY for one in operation.get("parameters", ()))
    }
    taken = {
        (method, route.path_format)
        for route in routes_of(door.desk)
        if isinstance(route, APIRoute) and route.endpoint.__annotations__.keys() & {"retry", "_retry"}
        for method in route.methods or ()
    }
    assert {(method, path.removeprefix("/api")) for method, path in listed} == {
        (method, path.removeprefix("/api")) for method, path in taken
    }
    assert ("POST", "/api/admin/backup") not in listed


SHORT = {"layer": "short", "kind": "mood", "content": "content"}


@pytest.mark.parametrize("lifetimes", [{"mood": 60}, {}], ids=["another lifetime", "none of this kind"])
@pytest.mark.parametrize(
    ("named", "key"), [({}, KEY), ({"id": "calm"}, KEY), ({"id": "calm"}, {})], ids=["a key", "both", "an id"]
)
async def test_a_short_memory_that_is_sent_again_to_a_node_of_other_lifetimes_is_the_first_one(
    door: Door, lifetimes: dict[str, int], named: dict[str, str], key: dict[str, str]
) -> None:
    """What the setting of a node adds is no part of the request."""
    body = {**SHORT, **named}
    first = await door.post("/api/memory", json=body, headers=ALICE | key)
    assert first.is_success, first.text
    head = await door.head()
    door.desk.lifetimes = lifetimes
    await door.desk.view.wait_for(head)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app_of(door.desk)), base_url="http://127.0.0.1:8420"
    ) as later:
        again = await later.post("/api/memory", json=body, headers=ALICE | key)
        assert told(again) == told(first), again.text
        other = await later.post("/api/memory", json={**body, "content": "other"}, headers=ALICE | key)
        assert other.json()["error"]["code"] in {"idempotency_mismatch", "knowledge_exists", "invalid_payload"}
        lives = await later.post("/api/memory", json={**body, "lifetime": 120}, headers=ALICE | key)
        assert lives.json()["error"]["code"] in {"idempotency_mismatch", "knowledge_exists"}
    assert await door.head() == head, "none of them states anything"
