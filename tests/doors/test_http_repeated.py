"""A request that comes again with its key is answered as before; a key that comes with another request is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from producers.http.repeated import Repeated
from producers.operations.publish import mismatch
from tests.doors.http_door import ALICE, Door, http_door, refusal
from tests.doors.one_app import app_of

K, M = "/api/knowledge", "/api/v1/memories"
ITEM = {"task": "fix the lamp", "content": "turn the fuse", "types": ["tool"]}
KEY = {"Idempotency-Key": "one"}

WRITES: list[tuple[str, str, Any, str, Any]] = [
    ("POST", K, ITEM, K, {**ITEM, "content": "leave the fuse"}),
    ("POST", K, {**ITEM, "id": "named"}, K, {**ITEM, "id": "named", "task": "other"}),
    ("PUT", f"{K}/older", {"add_helpful_case": {"reason": "a"}}, f"{K}/older", {"add_helpful_case": {"reason": "b"}}),
    ("PUT", f"{K}/older", {"update_score": 5}, f"{K}/older", {"update_score": 4}),
    ("PUT", f"{K}/older", {"update_score": 5}, f"{K}/older", {"content": "anew"}),
    ("PUT", f"{K}/older", {"content": "anew"}, f"{K}/older", {"content": "otherwise"}),
    ("PUT", f"{K}/older/acl", {"acl": [{"entity": "user:bob"}]}, f"{K}/older/acl", {"acl": []}),
    ("DELETE", f"{K}/older?reason=a", None, f"{K}/older?reason=b", None),
    (
        "POST",
        f"{K}/batch_update",
        {"feedback_list": [{"knowledge_id": "older", "is_helpful": True}]},
        f"{K}/batch_update",
        {"feedback_list": [{"knowledge_id": "older", "is_helpful": False}]},
    ),
    ("POST", "/api/resource", {"id": "r", "title": "t"}, "/api/resource", {"id": "r", "title": "u"}),
    ("POST", "/api/resource", {"id": "r", "title": "t"}, "/api/resource", {"id": "s", "title": "t"}),
    ("PUT", f"{M}/user", {"content": {}}, f"{M}/user", {"content": {"name": "Ann"}}),
    ("PATCH", f"{M}/work", {"content": {}}, f"{M}/work", {"content": {"role": "cook"}}),
    ("POST", "/api/goals/g/focus", {"description": "lamp"}, "/api/goals/g/focus", {"description": "fuse"}),
    ("POST", f"{K}/slim", {"wait": 0}, f"{K}/slim", {"wait": 0, "dry_run": True}),
]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await opened.saved(ALICE, id="older", task="an older lamp")
        yield opened


@pytest.mark.parametrize(("method", "path", "body", "other_path", "other"), WRITES)
async def test_a_key_that_comes_with_another_request_is_refused(
    door: Door, method: str, path: str, body: Any, other_path: str, other: Any
) -> None:
    first = await door.request(method, path, json=body, headers=ALICE | KEY)
    assert first.status_code < 300, first.text
    head = await door.head()
    refused = await door.request(method, other_path, json=other, headers=ALICE | KEY)
    assert "a key of its own" in refusal(refused, 422, "idempotency_mismatch")
    again = await door.request(method, path, json=body, headers=ALICE | KEY)
    assert again.status_code == first.status_code, again.text
    assert await door.head() == head


async def test_a_save_is_compared_with_the_log_where_the_node_has_forgotten_the_request(door: Door) -> None:
    first = await door.post(K, json=ITEM, headers=ALICE | KEY)
    await door.desk.view.wait_for(first.json()["position"])
    restarted = httpx.ASGITransport(app_of(door.desk))
    async with httpx.AsyncClient(transport=restarted, base_url="http://127.0.0.1:8420") as later:
        again = await later.post(K, json=ITEM, headers=ALICE | KEY)
        assert (again.json()["id"], again.json()["duplicate"]) == (first.json()["id"], True)
    restarted = httpx.ASGITransport(app_of(door.desk))
    async with httpx.AsyncClient(transport=restarted, base_url="http://127.0.0.1:8420") as later:
        other = await later.post(K, json={**ITEM, "content": "leave the fuse"}, headers=ALICE | KEY)
        refusal(other, 422, "idempotency_mismatch")


async def test_the_key_of_a_refused_request_may_be_used_for_the_corrected_one(door: Door) -> None:
    for wrong in ({**ITEM, "types": []}, {**ITEM, "owner": "user:bob"}, {"task": "t"}):
        assert (await door.post(K, json=wrong, headers=ALICE | KEY)).status_code in (403, 422)
    assert (await door.post(K, json=ITEM, headers=ALICE | KEY)).status_code == 201


async def test_the_same_request_in_another_spelling_is_the_same(door: Door) -> None:
    first = await door.post(K, json=ITEM, headers=ALICE | KEY)
    turned = dict(reversed(ITEM.items()))
    again = await door.post(K, json=turned, headers=ALICE | KEY)
    assert (again.json()["id"], again.json()["duplicate"]) == (first.json()["id"], True)
    waited = await door.put(f"{K}/older?wait=1", json={"update_score": 5}, headers=ALICE | KEY)
    assert (await door.put(f"{K}/older", json={"update_score": 5}, headers=ALICE | KEY)).json() == waited.json()


def test_the_memory_of_keys_is_bounded() -> None:
    import uuid

    repeated = Repeated(most=2)
    keys = [uuid.uuid4() for _ in range(3)]
    assert all(repeated.check(key, "", number) for number, key in enumerate(keys))
    assert repeated.check(keys[0], "", "another")  # forgotten
    with pytest.raises(type(mismatch())):
        repeated.check(keys[2], "", "another")


async def test_an_update_is_compared_with_the_log_and_a_case_that_was_stated_before_is_no_other_request(
    door: Door,
) -> None:
    case = {"add_helpful_case": {"task": "t", "timestamp": "2026-03-05T12:00:00Z"}}
    before = await door.put(f"{K}/older", json=case, headers=ALICE)
    path, both = f"{K}/older", {**case, "update_score": 5}
    first = await door.put(path, json=both, headers=ALICE | KEY)
    assert [event["type"] for event in first.json()["events"]] == ["knowledge.scored", "knowledge.rated"]
    assert first.json()["events"][1] == before.json()["events"][0]
    await door.desk.view.wait_for(first.json()["position"])
    head = await door.head()
    for said in (both, {**both, "add_harmful_case": {"reason": "r"}}):
        restarted = httpx.ASGITransport(app_of(door.desk))
        async with httpx.AsyncClient(transport=restarted, base_url="http://127.0.0.1:8420") as later:
            again = await later.put(path, json=said, headers=ALICE | KEY)
        assert again.status_code == 200, again.text
        assert again.json()["events"] == first.json()["events"]
        assert await door.head() == head
    unkept = again.json()["fields"]["add_harmful_case"]
    assert (unkept["kept"], unkept["error"]["code"]) == (False, "idempotency_mismatch")


async def test_a_case_counts_once_for_whichever_entity_of_its_caller_judges(door: Door) -> None:
    both = ALICE | {"X-Ledger-Agent": "scribe"}
    await door.saved({"X-Ledger-Agent": "scribe"}, id="scribes", task="a lamp of the scribe")
    case = {"task": "t", "timestamp": "2026-03-05T12:00:00Z"}
    verdict = {"knowledge_id": "scribes", "is_helpful": True, "case": case}
    told = [
        (await door.put(f"{K}/scribes", json={"add_helpful_case": case}, headers=both)).json(),
        (await door.put(f"{K}/scribes", json={"add_helpful_case": case}, headers=both)).json(),
        (await door.post(f"{K}/batch_update", json={"feedback_list": [verdict]}, headers=both)).json(),
    ]
    assert len({each["position"] for each in told}) == 1
