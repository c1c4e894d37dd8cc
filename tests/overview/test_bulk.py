"""Is each item of a bulk judged as if it were changed alone, and does a revert undo what the bulk did and no more?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from ledger.event import NewEvent
from ledger.events.knowledge import Bulk, KnowledgeRetired
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.doors.one_app import app_of
from tests.memory.test_short_memories import K, M, read, said

BULK = f"{K}/bulk"
OPERATOR: dict[str, str] = {}
LEAD = {"X-Ledger-User": "lead", "X-Ledger-Project": "ledger"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


async def bulk(
    door: Door, action: str, ids: list[str], who: dict[str, str] = ALICE, key: str | None = None, **body: Any
) -> Any:
    stated = {"action": action, "ids": ids, "dry_run": False, **body}
    answer = await door.post(BULK, json=stated, headers=who | ({} if key is None else {"Idempotency-Key": key}))
    assert answer.status_code == 200, answer.text
    await door.desk.view.wait_for(await door.head())
    return answer.json()


async def revert(door: Door, bulk_id: str, who: dict[str, str] = ALICE, **body: Any) -> Any:
    return await said(door, f"/api/bulks/{bulk_id}/revert", body, who)


def outcomes(answer: Any) -> list[tuple[str, str, str | None]]:
    return [
        (each["id"], each["outcome"], None if each["error"] is None else each["error"]["code"])
        for each in answer["results"]
    ]


async def status(door: Door, item_id: str, who: dict[str, str] = ALICE) -> str:
    return str((await read(door, f"{K}/{item_id}", who))["status"])


async def test_each_item_is_judged_alone_as_if_it_were_changed_alone(door: Door) -> None:
    await door.saved(id="mine")
    await door.saved(id="gone")
    await door.saved(BOB, id="bobs", scopes=["public"])
    await door.saved(BOB, id="secret")
    await door.delete(f"{K}/gone", headers=ALICE)
    ids = ["secret", "mine", "absent", "gone", "bobs"]
    expected = [
        ("secret", "refused", "unknown_knowledge"),
        ("mine", "{}", None),
        ("absent", "refused", "unknown_knowledge"),
        ("gone", "unchanged", None),
        ("bobs", "refused", "not_owner"),
    ]
    head = await door.head()
    preview = await bulk(door, "retire", ids, dry_run=True)
    assert outcomes(preview) == [(a, b.format("would"), c) for a, b, c in expected]
    assert (preview["bulk_id"], preview["dry_run"], await door.head()) == (None, True, head)
    done = await bulk(door, "retire", ids, reason="spring cleaning")
    assert outcomes(done) == [(a, b.format("done"), c) for a, b, c in expected]
    assert (done["done"], done["unchanged"], done["refused"], done["position"]) == (1, 1, 3, head + 1)
    assert [await status(door, each) for each in ("mine", "gone")] == ["retired", "retired"]
    # What each is called, where the caller may know.
    assert [each["task"] is None for each in preview["results"]] == [True, False, True, False, False]
    for item_id in ("secret", "absent", "bobs"):
        alone = await door.delete(f"{K}/{item_id}", headers=ALICE)
        error = next(each["error"] for each in done["results"] if each["id"] == item_id)
        assert alone.json()["error"] == error


async def test_a_dry_run_is_the_default(door: Door) -> None:
    await door.saved(id="mine")
    answer = await door.post(BULK, json={"action": "retire", "ids": ["mine"]}, headers=ALICE)
    assert (answer.json()["dry_run"], answer.json()["done"], await status(door, "mine")) == (True, 1, "active")


async def test_a_revert_undoes_what_the_bulk_did_and_still_stands(door: Door) -> None:
    for name in ("a", "b", "c", "d"):
        await door.saved(id=name)
    await door.delete(f"{K}/d", headers=ALICE)
    done = await bulk(door, "retire", ["a", "b", "c", "d"])
    await said(door, f"{K}/b/restore")
    await door.put(f"{K}/c", json={"add_harmful_case": {}}, headers=ALICE)
    shown = await read(door, f"/api/bulks/{done['bulk_id']}")
    assert [(each["id"], each["stands"]) for each in shown["items"]] == [("a", True), ("b", False), ("c", True)]
    assert (shown["action"], shown["by"], shown["reason"], shown["standing"]) == ("retire", "user:alice", None, 2)
    undone = await revert(door, done["bulk_id"])
    assert outcomes(undone) == [
        ("a", "done", None), ("b", "refused", "version_conflict"), ("c", "done", None),
    ]  # fmt: skip
    assert [await status(door, each) for each in "abcd"] == ["active", "active", "active", "retired"]
    head = await door.head()
    again = await revert(door, done["bulk_id"])
    assert outcomes(again) == [
        ("a", "unchanged", "illegal_state"), ("b", "refused", "version_conflict"), ("c", "unchanged", "illegal_state"),
    ]  # fmt: skip
    assert await door.head() == head


async def test_a_restore_is_reverted_too_and_only_where_that_leads_back(door: Door) -> None:
    await door.saved(id="a")
    await said(door, M, {"id": "mood", "layer": "short", "kind": "mood", "content": "m", "lifetime": 1})
    await door.delete(f"{K}/a", headers=ALICE)
    done = await bulk(door, "restore", ["a"])
    assert await status(door, "a") == "active"
    assert outcomes(await revert(door, done["bulk_id"])) == [("a", "done", None)]
    assert await status(door, "a") == "retired"
    await door.desk.ledger.append(NewEvent(KnowledgeRetired(), "mood", "user:alice"))
    await door.desk.view.wait_for(await door.head())
    assert outcomes(await bulk(door, "retire", ["mood"])) == [("mood", "unchanged", None)]


async def test_sharing_adds_to_what_each_acl_has_and_a_revert_gives_it_back(door: Door) -> None:
    await door.saved(id="a", acl=[{"entity": "team:web", "permission": "read"}])
    await door.saved(id="b")
    await door.saved(id="c", acl=[{"entity": "user:bob", "permission": "read_write"}])
    shared = await bulk(door, "share", ["a", "b", "c"], readers=["user:bob"], writers=["team:web"])
    assert outcomes(shared) == [("a", "done", None), ("b", "done", None), ("c", "done", None)]
    acls = {name: (await read(door, f"{K}/{name}")).get("acl", []) for name in "abc"}
    both = [{"entity": "team:web", "permission": "read_write"}, {"entity": "user:bob", "permission": "read"}]
    assert acls["a"] == acls["b"] == both
    assert {each["entity"]: each["permission"] for each in acls["c"]} == dict.fromkeys(
        ("user:bob", "team:web"), "read_write"
    )
    again = await bulk(door, "share", ["a", "c"], readers=["user:bob"])
    assert (outcomes(again), again["bulk_id"]) == ([("a", "unchanged", None), ("c", "unchanged", None)], None)
    await revert(door, shared["bulk_id"])
    assert (await read(door, f"{K}/a"))["acl"] == [{"entity": "team:web", "permission": "read"}]
    assert "acl" not in await read(door, f"{K}/b")
    assert (await read(door, f"{K}/c"))["acl"] == [{"entity": "user:bob", "permission": "read_write"}]


async def test_a_retry_does_nothing_twice_and_a_key_of_another_bulk_is_refused(door: Door) -> None:
    for name in ("a", "b", "c"):
        await door.saved(id=name)
    first = await bulk(door, "retire", ["a", "b"], key="k-1", reason="r")
    head = await door.head()
    assert await bulk(door, "retire", ["a", "b"], key="k-1", reason="r") == first
    assert await door.head() == head
    restarted = httpx.ASGITransport(app_of(door.desk))  # what the node remembers is gone, the log is not
    async with httpx.AsyncClient(transport=restarted, base_url="http://127.0.0.1:8420") as later:
        sent = {"action": "retire", "ids": ["a", "b"], "reason": "r", "dry_run": False}
        assert (await later.post(BULK, json=sent, headers=ALICE | {"Idempotency-Key": "k-1"})).json() == first
    for other in ({"action": "restore"}, {"ids": ["a", "c"]}, {"reason": None}):
        restarted = httpx.ASGITransport(app_of(door.desk))
        async with httpx.AsyncClient(transport=restarted, base_url="http://127.0.0.1:8420") as later:
            answer = await later.post(BULK, json=sent | other, headers=ALICE | {"Idempotency-Key": "k-1"})
            refusal(answer, 422, "idempotency_mismatch")
    assert (await door.head(), await status(door, "c")) == (head, "active")


async def test_a_bulk_is_found_in_the_log_whatever_correlation_its_caller_names(door: Door) -> None:
    await door.saved(id="a")
    done = await bulk(door, "retire", ["a"], ALICE | {"X-Ledger-Correlation-Id": "mine"})
    lineage = await read(door, "/api/lineage", ref="a")
    assert {"mine", done["bulk_id"]} <= {each["ref"].partition(":")[2] for each in lineage["edges"]}
    assert (await read(door, f"/api/bulks/{done['bulk_id']}"))["done"] == 1


async def test_only_who_did_a_bulk_or_the_operator_sees_and_reverts_it(door: Door) -> None:
    await door.saved(id="a", scopes=["public"], acl=[{"entity": "user:bob", "permission": "read_write"}])
    done = await bulk(door, "retire", ["a"])
    missing = refusal(await door.get("/api/bulks/bulk-none", headers=BOB), 404, "unknown_reference")
    for answer in (
        await door.get(f"/api/bulks/{done['bulk_id']}", headers=BOB),
        await door.post(f"/api/bulks/{done['bulk_id']}/revert", json={}, headers=BOB),
    ):
        assert refusal(answer, 404, "unknown_reference").replace(done["bulk_id"], "bulk-none") == missing
    assert await status(door, "a") == "retired"
    assert outcomes(await revert(door, done["bulk_id"], OPERATOR)) == [("a", "done", None)]
    ordered = await bulk(door, "retire", ["a"], OPERATOR)
    assert (await door.get(f"/api/bulks/{ordered['bulk_id']}", headers=ALICE)).status_code == 404


async def test_an_event_of_another_that_names_a_bulk_is_no_part_of_it(door: Door) -> None:
    await door.saved(id="a")
    await door.saved(BOB, id="bobs")
    done = await bulk(door, "retire", ["a"], key="01890000-0000-7000-8000-000000000001")
    forged = KnowledgeRetired(bulk=Bulk(id=done["bulk_id"], by="user:alice"))
    await door.desk.ledger.append(NewEvent(forged, "bobs", "user:bob"))
    await door.desk.view.wait_for(await door.head())
    again = await bulk(door, "retire", ["a"], key="01890000-0000-7000-8000-000000000001")
    assert (again["bulk_id"], outcomes(again)) == (done["bulk_id"], [("a", "done", None)])
    assert [each["id"] for each in (await read(door, f"/api/bulks/{done['bulk_id']}"))["items"]] == ["a"]
    assert outcomes(await revert(door, done["bulk_id"])) == [("a", "done", None)]


async def test_a_bulk_shows_its_items_to_who_reads_them_now(door: Door) -> None:
    await door.saved(id="a")
    await door.saved(id="b")
    done = await bulk(door, "retire", ["a", "b"])
    await door.put(f"{K}/b", json={"owner": "user:bob", "scopes": ["user:bob"]}, headers=ALICE)
    await door.desk.view.wait_for(await door.head())
    shown = await read(door, f"/api/bulks/{done['bulk_id']}")
    assert ([each["id"] for each in shown["items"]], shown["done"], shown["standing"]) == (["a"], 1, 1)


async def test_a_revert_has_the_rights_that_its_caller_has_by_then(door: Door) -> None:
    await door.saved(id="a")
    await door.saved(id="b")
    done = await bulk(door, "retire", ["a", "b"])
    await door.put(f"{K}/b", json={"owner": "user:bob", "scopes": ["user:bob"]}, headers=ALICE)
    assert outcomes(await revert(door, done["bulk_id"])) == [("a", "done", None), ("b", "refused", "unknown_knowledge")]


async def test_a_coordinator_retires_what_a_project_shares_in_a_bulk(door: Door) -> None:
    await said(door, "/api/projects/ledger/coordinators", {"entity": "user:lead"}, OPERATOR)
    for name in ("one", "two"):
        await said(door, M, {"id": name, "kind": "adr", "content": name, "scopes": ["project:ledger"]})
    assert outcomes(await bulk(door, "retire", ["one", "two"], LEAD)) == [("one", "done", None), ("two", "done", None)]
    share = await bulk(door, "share", ["one"], LEAD, readers=["user:lead"])
    assert outcomes(share) == [("one", "refused", "not_owner")]


async def test_a_thousand_items_are_changed_in_a_few_batches_while_others_write(door: Door) -> None:
    items: list[dict[str, Any]] = [
        {"id": f"k{number}", "task": "t", "content": f"c{number}", "types": ["tool"]} for number in range(1_000)
    ]
    saved = await door.post(f"{K}/batch", json={"items": items}, headers=ALICE)
    await door.desk.view.wait_for(saved.json()["position"])
    ids = [item["id"] for item in items]
    writing = asyncio.create_task(door.put(f"{K}/k700", json={"add_helpful_case": {}}, headers=ALICE))
    done = await bulk(door, "retire", ids)
    await writing
    assert (done["done"], [each["id"] for each in done["results"]]) == (1_000, ids)
    undone = await revert(door, done["bulk_id"])
    assert undone["done"] == 1_000
    assert (await read(door, K, limit=1))["total"] == 1_000


async def test_an_event_that_does_not_count_stands_in_the_way_of_none(door: Door) -> None:
    await door.saved(id="a")
    await door.desk.ledger.append(NewEvent(KnowledgeRetired(), "a", "user:mallory"))
    assert outcomes(await bulk(door, "retire", ["a"])) == [("a", "done", None)]


@pytest.mark.parametrize(
    "body",
    [
        {"action": "erase", "ids": ["a"]},
        {"action": "retire", "ids": []},
        {"action": "retire", "ids": ["a", "a"]},
        {"action": "retire", "ids": [f"k{number}" for number in range(1_001)]},
        {"action": "retire", "ids": "a"},
        {"action": "retire", "ids": ["a"], "readers": ["user:bob"]},
        {"action": "share", "ids": ["a"]},
        {"action": "share", "ids": ["a"], "readers": ["user:bob"], "reason": "r"},
        {"action": "share", "ids": ["a"], "readers": ["bob"]},
        {"action": "retire", "ids": ["a"], "dry_run": "no"},
        {"action": "retire", "ids": ["a"], "odd": 1},
        {"ids": ["a"]},
    ],
)
async def test_a_bulk_that_does_not_fit_is_refused_and_changes_nothing(door: Door, body: dict[str, Any]) -> None:
    await door.saved(id="a")
    head = await door.head()
    refusal(await door.post(BULK, json={"dry_run": False} | body, headers=ALICE), 422, "invalid_payload")
    assert await door.head() == head


async def test_sharing_with_a_type_that_nobody_registered_is_refused(door: Door) -> None:
    await door.saved(id="a")
    body = {"action": "share", "ids": ["a"], "readers": ["guild:x"], "dry_run": False}
    refusal(await door.post(BULK, json=body, headers=ALICE), 422, "illegal_scope")
