"""A request that comes again is answered as before, though its caller may do more by now, or less."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.event import JsonObject, NewEvent
from ledger.events.evolution import EvolutionProposed, EvolutionRequested
from ledger.events.usage import Usage
from tests.doors.furnished import KEY, K, asked_later, furnished_door, told
from tests.doors.http_door import ALICE, BOB, Door, refusal

SCRIBE = {"X-Ledger-Agent": "scribe"}
BOTH = ALICE | SCRIBE
OPERATOR: dict[str, str] = {}
MAY_WRITE = {"acl": [{"entity": "user:bob", "permission": "read_write"}]}
HELPED = {"reason": "r"}
PARTS: list[JsonObject] = [
    {"content": "x", "add_helpful_case": HELPED},
    {"content": "x", "tags": {"a": "b"}, "update_score": 4},
    {"content": "x", "update_score": 4, "add_helpful_case": HELPED, "add_harmful_case": HELPED},
    {"content": "x", "expected_version": 1, "update_score": 4},
]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with furnished_door() as opened:
        yield opened


def parts_of(answer: httpx.Response) -> tuple[int, Any, Any, dict[str, bool]]:
    """What an answer to a change says, but for why a field was not kept."""
    said = answer.json()
    return (
        answer.status_code,
        said["position"],
        said["events"],
        {name: field["kept"] for name, field in said["fields"].items()},
    )


async def asked_again(door: Door, path: str, body: JsonObject, who: dict[str, str], at: str) -> httpx.Response:
    if at == "the same node":
        return await door.put(path, json=body, headers=who | KEY)
    return await asked_later(door, "PUT", path, body, who)


@pytest.mark.parametrize("at", ["the same node", "a node that was started again"])
@pytest.mark.parametrize("body", PARTS, ids=["a verdict", "a score", "all", "a version"])
async def test_what_was_not_kept_stays_so_when_the_request_comes_again_after_the_callers_rights_grew(
    door: Door, body: JsonObject, at: str
) -> None:
    await door.saved(ALICE, id="k", scopes=["public"])
    first = await door.put(f"{K}/k", json=body, headers=BOB | KEY)
    assert first.json()["fields"]["content"]["error"]["code"] == "not_owner"
    assert (await door.put(f"{K}/k/acl", json=MAY_WRITE, headers=ALICE)).is_success
    head = await door.head()
    again = await asked_again(door, f"{K}/k", body, BOB, at)
    assert parts_of(again) == parts_of(first)
    assert "a key of its own" in again.json()["fields"]["content"]["error"]["message"]
    assert await door.head() == head
    own = await door.put(f"{K}/k", json={"content": "x"}, headers=BOB | {"Idempotency-Key": "of its own"})
    assert own.json()["fields"]["content"]["kept"]


@pytest.mark.parametrize("at", ["the same node", "a node that was started again"])
async def test_what_was_kept_is_told_when_the_request_comes_again_after_its_item_was_closed(
    door: Door, at: str
) -> None:
    await door.saved(ALICE, id="k", scopes=["public"])
    body: JsonObject = {"content": "x", "add_helpful_case": HELPED}
    first = await door.put(f"{K}/k", json=body, headers=BOB | KEY)
    assert (await door.put(f"{K}/k", json={"scopes": ["user:alice"]}, headers=ALICE)).is_success
    await door.desk.view.wait_for(await door.head())
    head = await door.head()
    again = await asked_again(door, f"{K}/k", body, BOB, at)
    assert parts_of(again) == parts_of(first)
    assert again.json()["fields"]["content"]["error"]["code"] == "unknown_knowledge"
    refusal(await asked_later(door, "PUT", f"{K}/k", {"content": "x"}, BOB), 422, "idempotency_mismatch")
    refusal(await door.put(f"{K}/k", json=body, headers=BOB), 404, "unknown_knowledge")
    assert await door.head() == head


MORE: dict[str, tuple[JsonObject, JsonObject]] = {
    "a score": ({"add_helpful_case": {"reason": "r"}}, {"update_score": 5}),
    "words": ({"add_helpful_case": {"reason": "r"}, "update_score": 5}, {"content": "anew", "tags": {"a": "b"}}),
    "a dated case": (
        {"add_helpful_case": {"reason": "r"}}, {"add_harmful_case": {"timestamp": "2026-03-05T12:00:00Z"}},
    ),
    "a verdict": ({"content": "anew"}, {"add_helpful_case": {}}),
    "a rewriting": ({"content": "anew"}, {"evolve_feedback": "shorter"}),
}  # fmt: skip


@pytest.mark.parametrize("what", MORE)
async def test_what_a_change_says_beyond_the_parts_that_its_key_kept_is_told_as_not_kept_after_a_restart(
    door: Door, what: str
) -> None:
    """The log cannot tell it from what was refused then."""
    body, more = MORE[what]
    first = (await door.put(f"{K}/older", json=body, headers=BOTH | KEY)).json()
    head = await door.head()
    refusal(await door.put(f"{K}/older", json=body | more, headers=BOTH | KEY), 422, "idempotency_mismatch")
    later = (await asked_later(door, "PUT", f"{K}/older", body | more, BOTH)).json()
    assert later["events"] == first["events"]
    assert {name for name, each in later["fields"].items() if each["kept"]} == set(first["fields"])
    assert {name for name, each in later["fields"].items() if not each["kept"]} == set(more)
    assert await door.head() == head


# What is asked of an item before it is given away: method, what comes after the item's path, and the body.
TURNS: dict[str, tuple[str, str, Any]] = {
    "retire": ("DELETE", "?reason=r", None),
    "restore": ("POST", "/restore?reason=r", None),
    "share": ("PUT", "/acl", {"acl": [{"entity": "user:eve"}]}),
    "revert": ("POST", "/revert", {"to_version": 1}),
}


@pytest.mark.parametrize("who", [ALICE, OPERATOR], ids=["its owner", "the operator"])
@pytest.mark.parametrize("given", ["closed", "read", "shared"])
@pytest.mark.parametrize("what", TURNS)
async def test_what_was_asked_of_an_item_is_answered_as_before_though_it_was_given_away_since(
    door: Door, what: str, given: str, who: dict[str, str]
) -> None:
    method, rest, body = TURNS[what]
    item = "retired" if what == "restore" else "revised"
    first = await door.request(method, f"{K}/{item}{rest}", json=body, headers=who | KEY)
    scopes = {"closed": ["user:bob"], "read": ["user:bob", "user:alice"], "shared": ["user:bob", "public"]}[given]
    gone = {"owner": "user:bob", "scopes": scopes}
    assert (await door.put(f"{K}/{item}", json=gone, headers=ALICE)).is_success
    head = await door.head()
    assert told(await asked_later(door, method, f"{K}/{item}{rest}", body, who)) == told(first)
    assert await door.head() == head


@pytest.mark.parametrize("what", TURNS)
async def test_something_else_with_the_key_of_before_is_refused_where_the_item_was_given_away(
    door: Door, what: str
) -> None:
    method, rest, body = TURNS[what]
    others = {"share": {"acl": []}, "revert": {"to_version": 2}}
    item = "retired" if what == "restore" else "revised"
    assert (await door.request(method, f"{K}/{item}{rest}", json=body, headers=ALICE | KEY)).is_success
    gone = {"owner": "user:bob", "scopes": ["user:bob"]}
    assert (await door.put(f"{K}/{item}", json=gone, headers=ALICE)).is_success
    head = await door.head()
    other = await asked_later(door, method, f"{K}/{item}{rest.replace('=r', '=s')}", others.get(what), ALICE)
    refusal(other, 422, "idempotency_mismatch")
    unkeyed = await door.request(method, f"{K}/{item}{rest}", json=body, headers=ALICE)
    refusal(unkeyed, 404, "unknown_knowledge")
    new = ALICE | {"Idempotency-Key": "two"}
    refusal(await door.request(method, f"{K}/{item}{rest}", json=body, headers=new), 404, "unknown_knowledge")
    assert await door.head() == head


async def test_a_revert_that_comes_again_tells_the_version_that_it_made(door: Door) -> None:
    path, body = f"{K}/revised/revert", {"to_version": 1}
    first = await door.post(path, json=body, headers=ALICE | KEY)
    assert first.json()["version"] == 4
    assert (await door.put(f"{K}/revised", json={"content": "later"}, headers=ALICE)).is_success
    assert told(await asked_later(door, "POST", path, body, ALICE)) == told(first)


async def test_a_decision_tells_whom_it_retired_though_that_item_was_given_away_since(door: Door) -> None:
    path, body = "/api/conflicts/conflict-1/resolve", {"winner": "older"}
    first = await door.post(path, json=body, headers=ALICE | KEY)
    assert first.json()["retired"] == "newer"
    gone = {"owner": "user:bob", "scopes": ["user:bob"]}
    assert (await door.put(f"{K}/newer", json=gone, headers=ALICE)).is_success
    head = await door.head()
    assert told(await asked_later(door, "POST", path, body, ALICE)) == told(first)
    assert await door.head() == head


@pytest.mark.parametrize("who", [BOTH, OPERATOR], ids=["who owns both", "the operator"])
async def test_an_evolution_of_an_item_that_another_owns_is_reverted_once(door: Door, who: dict[str, str]) -> None:
    may_write = {"acl": [{"entity": "agent:scribe", "permission": "read_write"}]}
    shared = await door.put(f"{K}/older/acl", json=may_write, headers=ALICE)
    asked = EvolutionRequested(item_id="older", base_version=2, feedback="f", apply=False)
    proposed = EvolutionProposed(item_id="older", content="by a model", usage=Usage(model="m", prompt_version="1"))
    for fact in (asked, proposed):
        await door.desk.ledger.append(NewEvent(fact, "evolution-3", "agent:scribe"))
    assert shared.is_success
    await door.desk.view.wait_for(await door.head())
    applied = await door.post("/api/evolutions/evolution-3/apply", headers=SCRIBE)
    assert applied.is_success, applied.text
    path = "/api/evolutions/evolution-3/revert"
    first = await door.post(path, headers=who | KEY)
    assert first.is_success, first.text
    head = await door.head()
    assert told(await asked_later(door, "POST", path, None, who)) == told(first)
    assert await door.head() == head
