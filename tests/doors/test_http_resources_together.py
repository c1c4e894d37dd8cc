"""Resources that are saved with an item: its scopes and owner are theirs, and what is refused keeps nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from kledger.requests.resources import MOST_TOGETHER
from ledger.event import JsonObject
from tests.doors.http_door import AGENT, ALICE, BOB, Door, http_door, refusal

ITEM: JsonObject = {"task": "log in", "content": "use the test account", "types": ["tool"]}
CODE: JsonObject = {"id": "code/login", "title": "Login code", "body": "driver.get(url)", "content_type": "code"}
ACCOUNT: JsonObject = {"id": "credentials/a", "title": "Account", "secure_body": "the-secret"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def read(door: Door, resource_id: str, who: dict[str, str] = ALICE) -> JsonObject:
    answer = await door.get(f"/api/resource/{resource_id}", headers=who)
    assert answer.status_code == 200, answer.text
    told: JsonObject = answer.json()
    return told


async def test_a_resource_that_says_nothing_else_has_the_items_scopes_and_owner(door: Door) -> None:
    scopes, owner = ["org:cybertogether", "agent:scribe"], "agent:research_agent"
    await door.saved(AGENT, **ITEM, scopes=scopes, owner=owner, resources=[CODE, ACCOUNT])
    for one in (CODE, ACCOUNT):
        told = await read(door, one["id"], AGENT)
        assert (told["scopes"], told["owner"], told["version"]) == (scopes, owner, 1)
    assert (await read(door, ACCOUNT["id"], AGENT))["secure_body"] == "the-secret"
    assert (await read(door, ACCOUNT["id"], {"X-Ledger-Org": "cybertogether"}))["secure"] == "withheld"


async def test_what_a_resource_says_for_itself_stays(door: Door) -> None:
    own = {"scopes": ["public"], "shared_with": ["user:bob"]}
    told = await door.saved(ALICE, **ITEM, scopes=["user:alice"], resources=[{**ACCOUNT, **own}])
    assert told["warnings"] == []
    found = await read(door, ACCOUNT["id"], BOB)
    assert (found["scopes"], found["owner"], found["secure_body"]) == (["public"], "user:alice", "the-secret")


async def test_the_item_refers_to_what_is_saved_with_it_and_can_be_followed(door: Door) -> None:
    told = await door.saved(ALICE, **ITEM, resource_ids=["code/other", CODE["id"]], resources=[CODE, ACCOUNT])
    assert told["version"] == 1
    found = (await door.get(f"/api/knowledge/{told['id']}", headers=ALICE)).json()
    assert found["resource_ids"] == ["code/other", CODE["id"], ACCOUNT["id"]]
    assert [each["readable"] for each in found["resources"]] == [False, True, True]
    assert [each["resource_id"] for each in told["warnings"]] == ["code/other"]


async def test_the_secret_is_sealed_as_in_a_save_of_its_own(door: Door) -> None:
    await door.saved(ALICE, **ITEM, resources=[ACCOUNT])
    kept = [orjson.loads(event.body) async for batch in door.desk.ledger.read() for event in batch]
    assert [event["type"] for event in kept] == ["resource.saved", "knowledge.saved"]
    assert kept[0]["data"]["secure_body"].startswith("sealed:v1:")
    assert "the-secret" not in str(kept)


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        ({"id": "hers", "title": "mine now"}, 403, "not_owner"),
        ({"id": "r", "title": "t", "owner": "user:bob"}, 403, "not_owner"),
        ({"id": "r", "title": "t", "expected_version": 4}, 409, "version_conflict"),
        ({"id": "r", "title": "t", "metadata": {"expires_at": "soon"}}, 422, "invalid_payload"),
        ({"id": "../r", "title": "t"}, 422, "invalid_payload"),
        ({"id": "r", "title": "t", "content": "typo"}, 422, "invalid_payload"),
        ({"id": "r", "title": "t", "scopes": ["nobody"]}, 422, "illegal_scope"),
        ({"id": "r", "title": "t", "body": "sealed:v1:x:eA=="}, 422, "invalid_payload"),
        ({"id": CODE["id"], "title": "again"}, 422, "invalid_payload"),
        ({"id": "r", "title": "t", "secure_body": {"secret": "the-secret"}}, 422, "invalid_payload"),
    ],
)
async def test_a_resource_that_is_refused_leaves_neither_the_item_nor_the_others(
    door: Door, wrong: JsonObject, status: int, code: str
) -> None:
    first = await door.post("/api/resource", json={"id": "hers", "title": "hers"}, headers=BOB)
    await door.desk.view.wait_for(first.json()["position"])
    answer = await door.post("/api/knowledge", json={**ITEM, "resources": [CODE, wrong]}, headers=ALICE)
    assert "the-secret" not in refusal(answer, status, code)
    assert "the-secret" not in answer.text
    assert await door.head() == first.json()["position"]
    batch = {"items": [{**ITEM, "resources": [CODE, wrong]}, {**ITEM, "content": "other"}]}
    told = (await door.post("/api/knowledge/batch", json=batch, headers=ALICE)).json()
    assert [each["outcome"] for each in told["results"]] == ["refused", "saved"]
    assert told["results"][0]["error"]["code"] == code
    assert await door.head() == first.json()["position"] + 1


async def test_an_item_that_is_refused_leaves_no_resource(door: Door) -> None:
    await door.saved(ALICE, **ITEM, id="mine")
    before = await door.head()
    other = {**ITEM, "id": "mine", "content": "says something else", "resources": [CODE]}
    refusal(await door.post("/api/knowledge", json=other, headers=ALICE), 409, "knowledge_exists")
    told = (await door.post("/api/knowledge/batch", json={"items": [other]}, headers=ALICE)).json()
    assert told["results"][0]["error"]["code"] == "knowledge_exists"
    assert await door.head() == before


async def test_more_resources_than_an_item_may_bring_are_refused(door: Door) -> None:
    many = [{"id": f"r/{number}", "title": "t"} for number in range(MOST_TOGETHER + 1)]
    refusal(await door.post("/api/knowledge", json={**ITEM, "resources": many}, headers=ALICE), 422, "invalid_payload")
    assert await door.head() == 0
    await door.saved(ALICE, **ITEM, resources=many[1:])
    assert await door.head() == MOST_TOGETHER + 1


@pytest.mark.parametrize("how", ["a key", "an id", "a batch"])
async def test_the_same_again_changes_nothing(door: Door, how: str) -> None:
    body: JsonObject = {**ITEM, "resources": [CODE, ACCOUNT]}
    path, headers = "/api/knowledge", ALICE
    if how == "a key":
        headers = {**ALICE, "Idempotency-Key": "k"}
    elif how == "an id":
        body["id"] = "mine"
    else:
        path, body = f"{path}/batch", {"items": [body]}
    first = (await door.post(path, json=body, headers=headers)).json()
    await door.desk.view.wait_for(first["position"])
    before = await door.head()
    again = (await door.post(path, json=body, headers=headers)).json()
    assert await door.head() == before
    assert again["position"] == first["position"]
    assert (again["unchanged"], again["refused"]) == (1, 0) if how == "a batch" else again["duplicate"]


async def test_a_key_that_comes_with_another_resource_is_refused(door: Door) -> None:
    headers = {**ALICE, "Idempotency-Key": "k"}
    told = (await door.post("/api/knowledge", json={**ITEM, "resources": [ACCOUNT]}, headers=headers)).json()
    await door.desk.view.wait_for(told["position"])
    async with http_door() as another:  # which remembers no requests, and has the same log
        another.desk.ledger, another.desk.view, another.desk.vault = (
            door.desk.ledger,
            door.desk.view,
            door.desk.vault,
        )
        for changed in ({"title": "Another"}, {"secure_body": "another"}):
            body = {**ITEM, "resources": [{**ACCOUNT, **changed}]}
            answer = await another.post("/api/knowledge", json=body, headers=headers)
            refusal(answer, 422, "idempotency_mismatch")
    assert await door.head() == told["position"]


@pytest.mark.parametrize("how", ["one save", "a save with a key", "a batch"])
async def test_what_a_resource_says_anew_is_kept_where_the_item_says_the_same(door: Door, how: str) -> None:
    async def save(**changed: Any) -> JsonObject:
        body: JsonObject = {**ITEM, "id": "mine", "resources": [{**ACCOUNT, **changed}]}
        headers = {**ALICE, "Idempotency-Key": str(changed)} if how == "a save with a key" else ALICE
        path = "/api/knowledge/batch" if how == "a batch" else "/api/knowledge"
        answer = await door.post(path, json={"items": [body]} if how == "a batch" else body, headers=headers)
        await door.desk.view.wait_for(await door.head())
        told: JsonObject = answer.json()
        return told

    await save()
    again = await save(title="Renamed")
    assert again["unchanged"] == 1 if how == "a batch" else again["duplicate"]
    told = await read(door, ACCOUNT["id"])
    assert (told["version"], told["title"], told["secure_body"]) == (2, "Renamed", "the-secret")


async def test_items_of_a_batch_may_bring_the_same_resource(door: Door) -> None:
    items = [{**ITEM, "content": f"c{number}", "resources": [CODE]} for number in range(3)]
    told = (await door.post("/api/knowledge/batch", json={"items": items}, headers=ALICE)).json()
    assert [each["outcome"] for each in told["results"]] == ["saved"] * 3
    await door.desk.view.wait_for(told["position"])
    assert (await read(door, CODE["id"]))["version"] == 1
