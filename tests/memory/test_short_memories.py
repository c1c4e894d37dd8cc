"""What became of a short memory is shown by every read, and stated in the log by the node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from consumers.reactors.lives import GRACE, LifeKeeper
from ledger.event import JsonObject, utc_now
from producers.operations.publish import publish
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.patience import PATIENCE

M, K = "/api/memory", "/api/knowledge"
MOOD = {"id": "mood", "layer": "short", "kind": "mood", "content": "calm today"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


@pytest.fixture
def keeper(door: Door) -> LifeKeeper:
    desk = door.desk
    return LifeKeeper(desk.org, desk.view, partial(publish, desk.ledger, desk.tally))


async def said(door: Door, path: str, body: JsonObject | None = None, who: dict[str, str] = ALICE) -> JsonObject:
    answer = await door.post(path, json={} if body is None else body, headers=who)
    assert answer.is_success, answer.text
    await door.desk.view.wait_for(await door.head())
    document: JsonObject = answer.json()
    return document


async def read(door: Door, path: str, who: dict[str, str] = ALICE, **asked: Any) -> JsonObject:
    answer = await door.get(path, headers=who, params=asked or None)
    assert answer.status_code == 200, answer.text
    document: JsonObject = answer.json()
    return document


async def recall(door: Door, trace: str | None = None, who: dict[str, str] = ALICE) -> list[str]:
    more = {"X-Ledger-Trace-Id": trace} if trace else {}
    found = await read(door, f"{K}/search", who | more, q="calm")
    await door.desk.view.wait_for(await door.head())
    return [each["id"] for each in found["results"]]


async def over(door: Door) -> None:
    """Return when the memory, which lives for a second, is over."""
    async with asyncio.timeout(PATIENCE):
        while (await read(door, f"{M}/mood"))["status"] != "expired":  # noqa: ASYNC110  # time itself is waited for
            await asyncio.sleep(0.05)


async def test_a_memory_that_is_over_is_out_of_recall_before_anybody_says_so(door: Door) -> None:
    saved = await said(door, M, MOOD | {"lifetime": 1})
    await said(door, "/api/goals/day/focus", {"description": "calm"})
    before = (await read(door, f"{M}/mood"))["created_at"]
    await over(door)
    (version,) = (await read(door, f"{K}/mood/history"))["versions"]
    assert version["status"] == "active", "which the log still says"
    assert (await read(door, f"{K}/mood"))["status"] == "expired"
    assert [each["status"] for each in (await read(door, K, status="all"))["results"]] == ["expired"]
    for status in ("all", "expired"):
        facets = await read(door, "/api/overview/facets", status=status)
        assert facets["statuses"] == [{"value": "expired", "count": 1}]
    assert await recall(door) == []
    assert (await read(door, K))["results"] == []
    assert (await read(door, M))["total"] == 0
    assert (await read(door, "/api/recall/startup"))["results"] == []
    goal = await read(door, "/api/goals/day")
    assert ([each["id"] for each in goal["knowledge"]], goal["left_out"]) == ([], 1)
    assert [each["id"] for each in (await read(door, M, status="expired"))["results"]] == ["mood"]
    for then in (saved["position"], before):
        assert (await read(door, f"{M}/mood", as_of=then))["status"] == "active"
        assert [each["id"] for each in (await read(door, M, as_of=then))["results"]] == ["mood"]
        assert [each["id"] for each in (await read(door, K, as_of=then))["results"]] == ["mood"]


async def test_the_node_states_what_is_over_once_and_an_owner_brings_it_back(door: Door, keeper: LifeKeeper) -> None:
    await said(door, M, MOOD | {"lifetime": 1})
    assert await keeper.look(utc_now() - GRACE) == 0
    await over(door)
    assert await keeper.look(utc_now() + 2 * GRACE) == 1
    await door.desk.view.wait_for(await door.head())
    assert await keeper.look(utc_now() + 2 * GRACE) == 0
    (last,) = (await read(door, f"{K}/mood/history"))["versions"][1:]
    assert (last["change"], last["actor"], last["status"]) == ("expired", "user:local", "expired")
    assert (await read(door, K, status="expired"))["total"] == 1
    refusal(await door.post(f"{M}/mood/confirm", json={}, headers=ALICE), 409, "illegal_state")
    await said(door, f"{K}/mood/restore")
    assert (await read(door, f"{K}/mood"))["status"] == "active"


async def test_what_is_over_is_confirmed_no_sooner_than_it_is_once_the_node_has_said_so(
    door: Door, keeper: LifeKeeper
) -> None:
    await said(door, M, MOOD | {"lifetime": 1})
    await over(door)
    head = await door.head()
    before = refusal(await door.post(f"{M}/mood/confirm", json={}, headers=ALICE), 409, "illegal_state")
    too_early = refusal(await door.post(f"{K}/mood/restore", json={}, headers=ALICE), 409, "illegal_state")
    assert "is over" in too_early, "and not that it is active"
    assert await door.head() == head
    assert await keeper.look(utc_now() + 2 * GRACE) == 1
    await door.desk.view.wait_for(await door.head())
    assert refusal(await door.post(f"{M}/mood/confirm", json={}, headers=ALICE), 409, "illegal_state") == before
    await said(door, f"{K}/mood/restore")
    assert (await said(door, f"{M}/mood/confirm"))["promoted"]


async def test_a_confirmation_that_was_in_time_is_repeated_with_its_key_after_the_memory_would_have_been_over(
    door: Door,
) -> None:
    for lifetime in (1, 8, 64):  # a machine that is busy may not be in time for the first
        memory = f"mood-{lifetime}"
        await said(door, M, MOOD | {"id": memory, "lifetime": lifetime})
        key = ALICE | {"Idempotency-Key": f"in time {lifetime}"}
        first = await door.post(f"{M}/{memory}/confirm", json={}, headers=key)
        if first.is_success:
            break
    await door.desk.view.wait_for(await door.head())
    ends = datetime.fromisoformat((await read(door, f"{M}/{memory}"))["created_at"]) + timedelta(seconds=lifetime)
    while utc_now() <= ends:  # noqa: ASYNC110  # time itself is waited for
        await asyncio.sleep(0.05)
    assert await said(door, f"{M}/{memory}/confirm", who=key) == first.json()


async def test_three_recalls_for_different_traces_promote(door: Door, keeper: LifeKeeper) -> None:
    await said(door, M, MOOD)
    first = await read(door, f"{M}/mood")
    for trace in ("one", "one", "two"):
        assert await recall(door, trace) == ["mood"]
    assert await keeper.look(utc_now()) == 0
    assert (await read(door, f"{M}/mood"))["expires_at"] > first["expires_at"], "a recall renews it"
    assert await recall(door, "three") == ["mood"]
    assert await keeper.look(utc_now()) == 1
    await door.desk.view.wait_for(await door.head())
    now = await read(door, f"{M}/mood")
    assert (now["layer"], now["status"], now["version"], "expires_at" in now) == ("semantic", "active", 2, False)
    assert (await read(door, f"{K}/mood"))["memory"] == {"layer": "semantic", "kind": "mood"}
    assert await keeper.look(utc_now()) == 0


async def test_a_confirmation_promotes_at_once_and_is_evidence(door: Door) -> None:
    await said(door, M, MOOD)
    confirmed = await said(door, f"{M}/mood/confirm", {"case": {"reason": "remember this"}})
    assert (confirmed["layer"], confirmed["promoted"]) == ("semantic", True)
    now = await read(door, f"{M}/mood")
    assert (now["layer"], now["evidence_count"], now["confidence"] > 0.5) == ("semantic", 2, True)
    assert now["last_confirmed"] is not None
    again = await said(door, f"{M}/mood/confirm")
    assert (again["layer"], again["promoted"]) == ("semantic", False)
    assert (await read(door, f"{M}/mood"))["evidence_count"] == 3


async def test_who_does_not_see_a_memory_confirms_nothing_and_learns_nothing(door: Door) -> None:
    await said(door, M, MOOD)
    plain = await door.saved(id="plain")
    head = await door.head()
    hidden = refusal(await door.post(f"{M}/mood/confirm", json={}, headers=BOB), 404, "unknown_knowledge")
    absent = refusal(await door.post(f"{M}/none/confirm", json={}, headers=BOB), 404, "unknown_knowledge")
    assert hidden.replace("mood", "ID") == absent.replace("none", "ID")
    refusal(await door.post(f"{M}/{plain['id']}/confirm", json={}, headers=ALICE), 404, "unknown_knowledge")
    assert await door.head() == head


async def test_a_reader_through_a_team_confirms_what_the_team_reads(door: Door) -> None:
    await said(door, M, MOOD | {"scopes": ["team:web"]})
    bob = BOB | {"X-Ledger-Team": "web"}
    assert (await said(door, f"{M}/mood/confirm", who=bob))["promoted"]
    assert (await read(door, f"{M}/mood"))["layer"] == "semantic"


async def test_a_confirmation_is_repeated_with_its_key_after_the_memory_was_closed(door: Door) -> None:
    await said(door, M, MOOD | {"scopes": ["user:bob"]})
    key = BOB | {"Idempotency-Key": "one"}
    first = await said(door, f"{M}/mood/confirm", {"case": {"reason": "a"}}, key)
    assert (await door.put(f"{K}/mood", json={"scopes": ["user:alice"]}, headers=ALICE)).is_success
    await door.desk.view.wait_for(await door.head())
    assert await said(door, f"{M}/mood/confirm", {"case": {"reason": "a"}}, key) == first
    other = await door.post(f"{M}/mood/confirm", json={"case": {"reason": "b"}}, headers=key)
    refusal(other, 422, "idempotency_mismatch")
    refusal(await door.post(f"{M}/mood/confirm", json={}, headers=BOB), 404, "unknown_knowledge")


CHANGES: list[tuple[str, str, JsonObject]] = [
    ("PUT", f"{K}/mood", {"content": "calm again"}),
    ("PUT", f"{K}/mood", {"update_score": 5}),
    ("PUT", f"{K}/mood/acl", {"acl": [{"entity": "user:bob"}]}),
    ("POST", f"{K}/mood/revert", {"to_version": 1}),
    ("POST", f"{K}/mood/restore", {}),
]


async def test_no_change_brings_back_what_is_over_before_the_node_has_said_so(door: Door, keeper: LifeKeeper) -> None:
    await said(door, M, MOOD | {"lifetime": 1})
    await over(door)
    head = await door.head()
    for method, path, body in CHANGES:
        answer = await door.request(method, path, json=body, headers=ALICE)
        assert "is over" in refusal(answer, 409, "illegal_state"), path
    for action, more in (("restore", {}), ("share", {"readers": ["user:bob"]})):
        asked = {"action": action, "ids": ["mood"], "dry_run": False, **more}
        (one,) = (await said(door, f"{K}/bulk", asked))["results"]
        assert (one["outcome"], one["error"]["code"]) == ("refused", "illegal_state")
        assert "is over" in one["error"]["message"]
    assert await door.head() == head
    both = {"add_helpful_case": {"task": "a walk"}, "content": "calm again"}
    told = (await door.request("PUT", f"{K}/mood", json=both, headers=ALICE)).json()
    assert (told["fields"]["add_helpful_case"]["kept"], told["fields"]["content"]["kept"]) == (True, False)
    assert (await read(door, f"{K}/mood"))["status"] == "expired"
    assert await keeper.look(utc_now() + 2 * GRACE) == 1
    await door.desk.view.wait_for(await door.head())
    assert (await said(door, f"{K}/bulk", {"action": "restore", "ids": ["mood"], "dry_run": False}))["done"] == 1
