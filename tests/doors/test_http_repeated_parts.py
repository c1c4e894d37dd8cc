"""A key is compared with all that it made: what it made beyond a request is a mismatch, and it makes nothing more."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.knowledge import Case
from ledger.event import NO_LINEAGE, Fact, JsonObject, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeScored
from ledger.events.resource import ResourceSaved
from ledger.privacy.secure_body import key_name
from ledger.privacy.vault import Tombstone
from producers.operations.publish import NAMESPACE, event_id
from producers.operations.resources.stating import vault_of
from tests.doors.furnished import KEY, K, M, R, asked_later, furnished_door, told
from tests.doors.http_door import ALICE, BOB, Door, refusal

OLDER, MANY = f"{K}/older", f"{K}/batch_update"
BOTH = ALICE | {"X-Ledger-Agent": "scribe"}
ITEM = {"task": "fix the lamp", "content": "turn the fuse", "types": ["tool"]}
CODE, LAMP, FUSE = [{"id": name, "title": name, "body": f"of {name}"} for name in ("code", "lamp", "fuse")]
WHOLE: JsonObject = {
    "content": "anew",
    "update_score": 5,
    "add_helpful_case": {"reason": "it shines"},
    "add_harmful_case": {"reason": "it burns"},
}
USER, EVE, TOM = [{"entity": f"user:{name}"} for name in ("bob", "eve", "tom")]


def verdicts(*said: str) -> JsonObject:
    """Verdicts as `older+` (helpful) and `newer-`."""
    return {"feedback_list": [{"knowledge_id": each[:-1], "is_helpful": each[-1] == "+"} for each in said]}


def but(body: JsonObject, *left_out: str, **other: Any) -> JsonObject:
    return {name: each for name, each in {**body, **other}.items() if name not in left_out}


# What comes with a key first, and what with the same key later: body by what it is in comparison.
PARTS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "a change": (
        "PUT", OLDER, WHOLE,
        {
            **{f"without {name}": but(WHOLE, name) for name in WHOLE},
            **{f"only {name}": {name: WHOLE[name]} for name in WHOLE},
        },
    ),
    "two verdicts": (
        "PUT", OLDER, but(WHOLE, "content", "update_score"),
        {
            "one": {"add_helpful_case": WHOLE["add_helpful_case"]},
            "the other": {"add_harmful_case": WHOLE["add_harmful_case"]},
            "in each other's place": {
                "add_helpful_case": WHOLE["add_harmful_case"], "add_harmful_case": WHOLE["add_helpful_case"],
            },
        },
    ),
    "a verdict": (
        "PUT", OLDER, {"add_helpful_case": {"reason": "it shines"}},
        {
            "another": {"add_harmful_case": {"reason": "it shines"}}, "a score": {"update_score": 5},
            "words": {"content": "anew"},
        },
    ),
    "fields anew": (
        "PUT", OLDER, {"content": "anew", "task": "other"},
        {"one": {"content": "anew"}, "three": {"content": "anew", "task": "other", "tags": {"a": "b"}}},
    ),
    "verdicts": (
        "POST", MANY, verdicts("older+", "newer-"),
        {
            "the first": verdicts("older+"), "the second": verdicts("newer-"),
            "one more": verdicts("older+", "newer-", "older+"), "one before": verdicts("older-", "older+", "newer-"),
            "in another order": verdicts("newer-", "older+"), "another in a place": verdicts("older+", "newer+"),
            "a malformed one in a place": {"feedback_list": [*verdicts("older+")["feedback_list"], {}]},
        },
    ),
    "the same verdict twice": ("POST", MANY, verdicts("older+", "older+"), {"once": verdicts("older+")}),
    "a save": (
        "POST", K, ITEM,
        {
            "with an ACL": but(ITEM, acl=[USER]), "with an id": but(ITEM, id="named"),
            "with an eval": but(ITEM, eval={"confidence": 0.9}), "with a trace": but(ITEM, trace_id="t"),
            "with a resource": but(ITEM, resources=[CODE]), "with tags": but(ITEM, tags={"a": "b"}),
            "with another type": but(ITEM, types=["tool", "plan"]), "of another owner": but(ITEM, owner="agent:scribe"),
        },
    ),
    "a save that says all": (
        "POST", K, but(ITEM, id="named", acl=[USER, EVE], eval={"confidence": 0.9, "helpful": 2}, trace_id="t"),
        {
            f"without {name}": but(
                ITEM, name, id="named", acl=[USER, EVE], eval={"confidence": 0.9, "helpful": 2}, trace_id="t",
            )
            for name in ("acl", "id", "eval", "trace_id")
        },
    ),
    "a shared save": ("POST", K, but(ITEM, acl=[USER, EVE]), {
        "with one": but(ITEM, acl=[USER]), "with three": but(ITEM, acl=[USER, EVE, TOM]),
        "in another order": but(ITEM, acl=[EVE, USER]),
    }),
    "a save with resources": (
        "POST", K, but(ITEM, resource_ids=["code", "lamp", "fuse"], resources=[CODE, LAMP]),
        {
            what: but(ITEM, resource_ids=["code", "lamp", "fuse"], resources=resources)
            for what, resources in {
                "with none": [], "with the first": [CODE], "with the second": [LAMP],
                "with one more": [CODE, LAMP, FUSE], "in another order": [LAMP, CODE],
                "with another in a place": [CODE, FUSE], "with other words": [CODE, {**LAMP, "body": "else"}],
            }.items()
        },
    ),
    "a resource": ("POST", R, {**CODE, "shared_with": ["user:bob", "user:eve"]}, {
        "for fewer": {**CODE, "shared_with": ["user:bob"]},
        "for more": {**CODE, "shared_with": ["user:bob", "user:eve", "user:tom"]},
    }),
    "an ACL": ("PUT", f"{OLDER}/acl", {"acl": [USER, EVE]}, {
        "for none": {"acl": []}, "for fewer": {"acl": [USER]}, "for more": {"acl": [USER, EVE, TOM]},
        "for others": {"acl": [USER, TOM]},
    }),
    "a memory": ("PUT", f"{M}/work", {"content": {"occupation": "cook", "team_members": [{"name": "Bo"}]}}, {
        "with less": {"content": {"occupation": "cook"}},
        "with more": {"content": {"occupation": "cook", "team_members": [{"name": "Bo"}, {"name": "Jo"}]}},
    }),
    "a memory in part": ("PATCH", f"{M}/work", {"content": {"occupation": "cook", "team_members": [{"name": "Bo"}]}}, {
        "with less": {"content": {"occupation": "cook"}}, "with nothing": {"content": {}},
    }),
    "a slim": ("POST", f"{K}/slim", {"wait": 0, "scopes": ["user:alice", "public"]}, {
        "of fewer": {"wait": 0, "scopes": ["public"]}, "of all": {"wait": 0},
        "of more": {"wait": 0, "scopes": ["user:alice", "public", "agent:scribe"]},
        "of another owner": {"wait": 0, "scopes": ["user:alice", "public"], "owner": "agent:scribe"},
    }),
    "a decision": ("POST", "/api/conflicts/conflict-1/resolve", {"winner": "older", "reason": "r"}, {
        "without a reason": {"winner": "older"}, "without a winner": {"winner": None, "reason": "r"},
    }),
}  # fmt: skip
CASES = [(what, how) for what, (*_, others) in PARTS.items() for how in others]


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with furnished_door() as opened:
        yield opened


@pytest.mark.parametrize(("what", "how"), CASES)
async def test_a_key_that_comes_with_less_or_more_or_something_else_after_a_restart_is_refused(
    door: Door, what: str, how: str
) -> None:
    method, path, body, others = PARTS[what]
    first = await door.request(method, path, json=body, headers=BOTH | KEY)
    assert first.is_success, first.text
    head = await door.head()
    refusal(await asked_later(door, method, path, others[how], BOTH), 422, "idempotency_mismatch")
    assert told(await asked_later(door, method, path, body, BOTH)) == told(first)
    assert await door.head() == head, "neither states anything"


async def test_a_resource_that_said_this_already_is_no_other_one_when_the_key_comes_again(door: Door) -> None:
    assert (await door.post(R, json=CODE, headers=ALICE)).is_success
    body = but(ITEM, resources=[CODE, LAMP])
    first = await door.post(K, json=body, headers=ALICE | KEY)
    assert (await door.post(R, json={**CODE, "body": "anew"}, headers=ALICE)).is_success
    head = await door.head()
    assert told(await asked_later(door, "POST", K, body, ALICE)) == told(first)
    for other in (but(ITEM, resources=[{**CODE, "body": "anew"}, LAMP]), but(ITEM, resources=[FUSE, LAMP])):
        refusal(await asked_later(door, "POST", K, other, ALICE), 422, "idempotency_mismatch")
    assert await door.head() == head


async def test_the_resources_of_an_item_that_was_there_are_compared_with_what_their_key_kept(door: Door) -> None:
    await door.saved(ALICE, id="named", **ITEM)
    body = but(ITEM, id="named", resource_ids=[], resources=[])
    plain = await door.post(K, json=body, headers=ALICE)
    assert plain.json()["duplicate"]
    await door.saved(ALICE, id="there", **but(ITEM, resource_ids=["code", "lamp"]))
    body = but(ITEM, id="there", resource_ids=["code", "lamp"], resources=[CODE, LAMP])
    first = await door.post(K, json=body, headers=ALICE | KEY)
    assert (await door.post(R, json={**LAMP, "body": "anew"}, headers=ALICE)).is_success
    head = await door.head()
    assert told(await asked_later(door, "POST", K, body, ALICE)) == told(first)
    for resources in ([CODE], [CODE, {**LAMP, "body": "else"}], [LAMP, CODE]):
        other = {**body, "resources": resources}
        refusal(await asked_later(door, "POST", K, other, ALICE), 422, "idempotency_mismatch")
    assert await door.head() == head


@pytest.mark.parametrize("destroys", [True, False])
async def test_a_key_that_retired_a_resource_destroys_no_secret_and_the_other_way_round(
    door: Door, destroys: bool
) -> None:
    secret = {"id": "safe", "title": "Safe", "secure_body": "one-two"}
    assert (await door.post(R, json=secret, headers=ALICE)).is_success
    paths = [f"{R}/safe?destroy_secret=true", f"{R}/safe"]
    path, other = paths if destroys else reversed(paths)
    first = await door.delete(path, headers=ALICE | KEY)
    head = await door.head()
    refusal(await asked_later(door, "DELETE", other, None, ALICE), 422, "idempotency_mismatch")
    assert told(await asked_later(door, "DELETE", path, None, ALICE)) == told(first)
    assert await door.head() == head
    held = (await vault_of(door.desk).look([key_name("safe")]))[key_name("safe")]
    assert isinstance(held, Tombstone) == destroys


@pytest.mark.parametrize("others", [{"add_helpful_case": {"reason": "r"}}, {}], ids=["beside a verdict", "alone"])
async def test_an_item_that_is_given_away_is_given_away_once_however_often_it_is_sent(
    door: Door, others: JsonObject
) -> None:
    body = {"owner": "user:bob", "scopes": ["public"], **others}
    for who in (ALICE, {}):
        item_id = (await door.saved(ALICE, task=f"by {len(who)}"))["id"]
        first = await door.put(f"{K}/{item_id}", json=body, headers=who | KEY)
        head = await door.head()
        assert told(await asked_later(door, "PUT", f"{K}/{item_id}", body, who)) == told(first)
        assert await door.head() == head


async def test_a_request_of_which_a_part_was_refused_counts_once_even_where_that_part_is_allowed_by_now(
    door: Door,
) -> None:
    await door.saved(ALICE, id="k", scopes=["public"])
    path, body = f"{K}/k", {"content": "x", "update_score": 4, "add_helpful_case": {"reason": "r"}}
    first = await door.put(path, json=body, headers=BOB | KEY)
    assert not first.json()["fields"]["content"]["kept"]
    head = await door.head()
    assert told(await asked_later(door, "PUT", path, body, BOB)) == told(first)
    refusal(await asked_later(door, "PUT", path, but(body, "update_score"), BOB), 422, "idempotency_mismatch")
    may_write = {"acl": [{"entity": "user:bob", "permission": "read_write"}]}
    assert (await door.put(f"{path}/acl", json=may_write, headers=ALICE)).is_success
    again = (await asked_later(door, "PUT", path, body, BOB)).json()
    assert (again["events"], again["fields"]["content"]["kept"]) == (first.json()["events"], False)
    assert await door.head() == head + 1


async def test_a_request_that_no_model_could_take_up_counts_its_verdict_once(door: Door) -> None:
    body = {"evolve_feedback": "shorter", "add_helpful_case": {"reason": "r"}}
    first = await door.put(OLDER, json=body, headers=ALICE | KEY)
    assert first.json()["fields"]["evolve_feedback"]["error"]["code"] == "not_available"
    head = await door.head()
    assert told(await asked_later(door, "PUT", OLDER, body, ALICE)) == told(first)
    refusal(await asked_later(door, "PUT", OLDER, but(body, "add_helpful_case", update_score=4), ALICE), 422,
            "idempotency_mismatch")  # fmt: skip
    assert await door.head() == head


@pytest.mark.parametrize(
    "case", [{"reason": "r"}, {"timestamp": "2026-03-05T12:00:00Z"}], ids=["a case", "a dated one"]
)
async def test_a_verdict_counts_once_though_another_entity_of_its_caller_judges_by_now(
    door: Door, case: JsonObject
) -> None:
    await door.saved({"X-Ledger-Agent": "scribe"}, id="k", scopes=["public"])
    path, body = f"{K}/k", {"add_helpful_case": case}
    one = {"feedback_list": [{"knowledge_id": "k", "is_helpful": True}]}
    first, many = [
        await door.request(method, where, json=said, headers=BOTH | KEY)
        for method, where, said in (("PUT", path, body), ("POST", MANY, one))
    ]
    closed = await door.put(path, json={"scopes": ["agent:scribe"]}, headers={"X-Ledger-Agent": "scribe"})
    assert closed.is_success, closed.text
    head = await door.head()
    assert told(await asked_later(door, "PUT", path, body, BOTH)) == told(first)
    assert told(await asked_later(door, "POST", MANY, one, BOTH)) == told(many)
    assert await door.head() == head


async def test_verdicts_that_were_refused_are_refused_again_and_those_beside_them_count_once(door: Door) -> None:
    body = verdicts("older+", "nobody+", "newer-")
    first = await door.post(MANY, json=body, headers=ALICE | KEY)
    assert (first.json()["updated"], len(first.json()["refused"])) == (2, 1)
    head = await door.head()
    assert told(await asked_later(door, "POST", MANY, body, ALICE)) == told(first)
    refusal(await asked_later(door, "POST", MANY, verdicts("older+", "newer-"), ALICE), 422, "idempotency_mismatch")
    assert await door.head() == head


async def test_a_verdict_that_was_kept_is_answered_as_before_though_its_item_is_closed_by_now(door: Door) -> None:
    await door.saved(BOB, id="k", scopes=["public"])
    body = verdicts("older+", "k+")
    first = await door.post(MANY, json=body, headers=ALICE | KEY)
    assert (await door.put(f"{K}/k", json={"scopes": ["user:bob"]}, headers=BOB)).is_success
    head = await door.head()
    assert told(await asked_later(door, "POST", MANY, body, ALICE)) == told(first)
    assert await door.head() == head


async def test_what_was_kept_under_the_ids_of_before_is_known_when_its_request_comes_again(door: Door) -> None:
    """A client sends its request again to a node that was upgraded meanwhile."""

    async def kept(method: str, path: str, events: list[tuple[Fact, str, str]]) -> None:
        retry = uuid.uuid5(NAMESPACE, "\n".join([method, path, "user:alice", KEY["Idempotency-Key"]]))
        for fact, entity_id, part in events:
            event = NewEvent(fact, entity_id, "user:alice", "default", NO_LINEAGE, id=event_id(retry, part))
            await door.desk.ledger.append(event)

    helpful = KnowledgeRated(verdict="helpful", case=Case(), through="user:alice")
    score = KnowledgeScored(score=5, through="user:alice")
    await kept("PUT", OLDER, [(score, "older", "knowledge.scored0"), (helpful, "older", "knowledge.rated1")])
    await kept("POST", MANY, [(helpful, "older", "0"), (helpful, "newer", "1")])
    change: JsonObject = {"update_score": 5, "add_helpful_case": {}}
    head = await door.head()
    assert len(told(await asked_later(door, "PUT", OLDER, change, ALICE))[1]["events"]) == 2
    assert told(await asked_later(door, "POST", MANY, verdicts("older+", "newer+"), ALICE))[1]["updated"] == 2
    others: tuple[JsonObject, ...] = ({"update_score": 5}, {"add_helpful_case": {}}, {**change, "content": "anew"})
    for other in others:
        refusal(await asked_later(door, "PUT", OLDER, other, ALICE), 422, "idempotency_mismatch")
    refusal(await asked_later(door, "POST", MANY, verdicts("newer+", "older+"), ALICE), 422, "idempotency_mismatch")
    assert await door.head() == head


async def test_resources_under_the_ids_of_before_are_known_when_their_save_comes_again(door: Door) -> None:
    retry = uuid.uuid5(NAMESPACE, "\n".join(["POST", K, "user:alice", KEY["Idempotency-Key"]]))
    fact = ResourceSaved(title="code", body="of code", scopes=["user:alice"], owner="user:alice")
    body = but(ITEM, id="named", resource_ids=["code"], resources=[CODE])
    await door.saved(ALICE, **but(body, "resources"))
    event = NewEvent(fact, "code", "user:alice", "default", NO_LINEAGE, id=event_id(retry, "resource code"))
    await door.desk.ledger.append(event)
    assert (await door.post(R, json={**CODE, "body": "anew"}, headers=ALICE)).is_success
    head = await door.head()
    assert (await asked_later(door, "POST", K, body, ALICE)).is_success
    refusal(await asked_later(door, "POST", K, {**body, "resources": [{**CODE, "body": "else"}]}, ALICE), 422,
            "idempotency_mismatch")  # fmt: skip
    assert await door.head() == head
