"""What a project shares, over HTTP: proposed, decided on by a coordinator, replaced by a later version, put right."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kledger.contract.memory import Memory
from ledger.event import JsonObject, NewEvent
from ledger.events.knowledge import KnowledgeMerged, KnowledgeSaved
from ledger.events.project import ProjectMemberAssigned
from tests.doors.furnished import KEY, asked_later
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.test_short_memories import K, M, read, said

PROJECT = {"X-Ledger-Project": "ledger"}
ANN, LEAD = {"X-Ledger-User": "alice"} | PROJECT, {"X-Ledger-Agent": "lead"} | PROJECT
DEV = {"X-Ledger-Agent": "dev"} | PROJECT
OPERATOR: dict[str, str] = {}
MEMBERS = "/api/projects/ledger/members"
ADR: JsonObject = {"id": "adr", "kind": "adr", "task": "choose a database", "content": "PostgreSQL instead of MySQL"}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """A door of a node where agent:lead coordinates the project ledger."""
    async with http_door() as opened:
        appointed = await said(opened, "/api/projects/ledger/coordinators", {"entity": "agent:lead"}, OPERATOR)
        assert appointed["roles"] == ["coordinator"]
        yield opened


async def propose(door: Door, who: dict[str, str] = ANN, **more: Any) -> JsonObject:
    answer = await door.post(M, json=ADR | more, headers=who)
    assert answer.status_code == 202, answer.text
    await door.desk.view.wait_for(await door.head())
    document: JsonObject = answer.json()
    assert document["status"] == "proposed"
    return document


async def found(door: Door, who: dict[str, str] = DEV) -> list[str]:
    page = await read(door, f"{K}/search", who, q="PostgreSQL", min_position=await door.head())
    return [each["id"] for each in page["results"]]


async def listed(door: Door, who: dict[str, str] = DEV, **asked: Any) -> list[str]:
    return [each["id"] for each in (await read(door, M, who, **asked))["results"]]


async def retired(door: Door, who: dict[str, str], item_id: str = "adr") -> None:
    answer = await door.delete(f"{K}/{item_id}", headers=who)
    assert answer.is_success, answer.text
    await door.desk.view.wait_for(await door.head())


async def test_a_proposal_is_out_of_recall_until_a_coordinator_approves_it(door: Door) -> None:
    proposed = await propose(door)
    assert (proposed["layer"], proposed["id"]) == ("semantic", "adr")
    assert (await read(door, f"{M}/adr", DEV))["scopes"] == ["project:ledger"]
    assert (await found(door), await listed(door)) == ([], [])
    assert await listed(door, status="proposed") == ["adr"]
    startup = await read(door, "/api/recall/startup", DEV, q="choose a database")
    assert "PostgreSQL" not in str(startup)
    decided = await said(door, f"{M}/adr/approve", {"expected_version": 1, "reason": "agreed"}, LEAD)
    assert decided.items() >= {"status": "active", "superseded": None, "conflict": None}.items()
    assert (await found(door), await listed(door)) == (["adr"], ["adr"])
    changes = [each["change"] for each in (await read(door, f"{K}/adr/history", DEV))["versions"]]
    assert changes == ["saved", "approved"]


async def test_what_a_coordinator_saves_is_in_force_at_once(door: Door) -> None:
    answer = await door.post(M, json=ADR, headers=LEAD)
    assert (answer.status_code, answer.json()["status"]) == (201, "active")
    await door.desk.view.wait_for(await door.head())
    assert await listed(door) == ["adr"]


async def test_a_plain_save_with_a_shared_kind_is_proposed_too(door: Door) -> None:
    memory = {"layer": "semantic", "kind": "adr"}
    body = {"content": "c", "types": ["adr"], "scopes": ["project:ledger"], "memory": memory}
    answer = await door.post(K, json=body, headers=ANN)
    assert (answer.status_code, answer.json()["status"]) == (202, "proposed")
    private = await door.post(K, json=body | {"scopes": ["user:alice"]}, headers=ANN)
    assert (private.status_code, private.json()["status"]) == (201, "active")


async def test_nobody_but_a_coordinator_decides(door: Door) -> None:
    await propose(door)
    for verb in ("approve", "reject"):
        for who in (ANN, DEV, OPERATOR):
            answer = await door.post(f"{M}/adr/{verb}", json={}, headers=who)
            assert "appoint" in refusal(answer, 403, "not_owner")
        refusal(await door.post(f"{M}/adr/{verb}", json={}, headers=BOB), 404, "unknown_knowledge")
    await said(door, "/api/projects/other/coordinators", {"entity": "agent:dev"}, OPERATOR)
    refusal(await door.post(f"{M}/adr/approve", json={}, headers=DEV), 403, "not_owner")


async def test_a_coordinator_sees_the_proposals_of_their_project_without_naming_it(door: Door) -> None:
    await propose(door)
    alone = {"X-Ledger-Agent": "lead"}
    assert await listed(door, alone, status="proposed") == ["adr"]
    assert (await read(door, f"{M}/adr", alone))["content"] == ADR["content"]
    decided = await said(door, f"{M}/adr/reject", {"reason": "no"}, alone)
    assert decided["status"] == "rejected"
    assert (await read(door, f"{M}/adr", ANN))["reason"] == "no"


async def test_what_was_revised_since_it_was_read_is_not_approved(door: Door) -> None:
    await propose(door)
    answer = await door.put(f"{K}/adr", json={"content": "MySQL"}, headers=ANN)
    assert answer.is_success, answer.text
    stale = await door.post(f"{M}/adr/approve", json={"expected_version": 1}, headers=LEAD)
    assert "version 2" in refusal(stale, 409, "version_conflict")
    await said(door, f"{M}/adr/approve", {"expected_version": 2}, LEAD)
    refusal(await door.post(f"{M}/adr/approve", json={}, headers=LEAD), 409, "illegal_state")


async def test_a_decision_is_repeated_with_its_key_and_answers_the_same(door: Door) -> None:
    await said(door, M, ADR | {"id": "before"}, LEAD)
    await propose(door, supersedes="before")
    key = LEAD | {"Idempotency-Key": "one"}
    first = await said(door, f"{M}/adr/approve", {"reason": "yes"}, key)
    head = await door.head()
    assert first["superseded"] == "before"
    assert await said(door, f"{M}/adr/approve", {"reason": "yes"}, key) == first
    refusal(await door.post(f"{M}/adr/approve", json={"reason": "other"}, headers=key), 422, "idempotency_mismatch")
    assert await door.head() == head


async def test_its_author_revises_it_and_it_waits_again_a_coordinator_revises_it_and_it_holds(door: Door) -> None:
    await propose(door)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    for who, status in ((LEAD, "active"), (ANN, "proposed"), (LEAD, "proposed")):
        answer = await door.put(f"{K}/adr", json={"content": f"SQLite, says {who}"}, headers=who)
        assert answer.json()["status"] == status, answer.text
        await door.desk.view.wait_for(await door.head())
        assert (await read(door, f"{K}/adr", DEV))["status"] == status
    refusal(await door.put(f"{K}/adr", json={"content": "x"}, headers=DEV), 403, "not_owner")
    refusal(await door.put(f"{K}/adr", json={"scopes": ["public"]}, headers=LEAD), 403, "not_owner")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "", {"scopes": ["project:ledger"]}, "proposed"),
        ("PUT", "/acl", {"acl": [{"entity": "project:ledger"}]}, "proposed"),
        ("PUT", "", {"content": "SQLite"}, "active"),
        ("DELETE", "", None, "retired"),
    ],
    ids=["by its scopes", "by its ACL", "to nobody", "to nobody, retired"],
)
async def test_what_is_shared_with_a_project_only_later_is_answered_as_the_proposal_that_it_became(
    door: Door, method: str, path: str, body: Any, status: str
) -> None:
    saved = await said(door, M, ADR | {"scopes": ["user:alice"]}, ALICE)
    assert saved["status"] == "active"
    answer = await door.request(method, f"{K}/adr{path}", json=body, headers=ALICE | KEY)
    assert answer.json()["status"] == status, answer.text
    await door.desk.view.wait_for(await door.head())
    assert (await read(door, f"{K}/adr", ALICE))["status"] == status
    assert (await asked_later(door, method, f"{K}/adr{path}", body, ALICE)).json() == answer.json()


async def test_an_earlier_version_that_its_author_states_again_is_answered_as_the_proposal_that_it_is(
    door: Door,
) -> None:
    await propose(door)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    again = {"to_version": 1}
    answer = await said(door, f"{K}/adr/revert", again, ANN | KEY)
    assert answer["status"] == "proposed" == (await read(door, f"{K}/adr", ANN))["status"]
    assert (await asked_later(door, "POST", f"{K}/adr/revert", again, ANN)).json() == answer


async def test_why_says_who_may_change_it(door: Door) -> None:
    await propose(door)
    for who, you in ((ANN, "owner"), (LEAD, "coordinator"), (DEV, None)):
        may = (await read(door, f"{K}/adr/why", who))["may_change"]
        assert may == {"owner": "user:alice", "writers": [], "coordinators": ["agent:lead"], "you": you}
    acl = {"acl": [{"entity": "user:bob", "permission": "read"}]}
    assert (await door.put(f"{K}/adr/acl", json=acl, headers=ANN)).is_success
    await door.desk.view.wait_for(await door.head())
    may = (await read(door, f"{K}/adr/why", BOB))["may_change"]
    assert (may["coordinators"], may["you"]) == ([], None), "who reads it is not of the project"


async def test_creator_and_coordinator_retire_and_restore_it_and_nobody_else(door: Door) -> None:
    await propose(door)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    refusal(await door.delete(f"{K}/adr", headers=DEV), 403, "not_owner")
    await retired(door, LEAD)
    for who in (LEAD, ANN):
        restored = await said(door, f"{K}/adr/restore", {}, who)
        assert restored["status"] == "proposed"
        assert await listed(door, status="proposed") == ["adr"]
        await said(door, f"{M}/adr/approve", {}, LEAD)
        await retired(door, who)


async def test_a_later_version_is_in_force_and_the_earlier_one_says_so(door: Door) -> None:
    await propose(door)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    await propose(door, DEV, id="later", content="PostgreSQL 18", supersedes="adr")
    assert await listed(door) == ["adr"]
    decided = await said(door, f"{M}/later/approve", {}, LEAD)
    assert (decided["superseded"], decided["conflict"]) == ("adr", None)
    assert (await found(door), await listed(door)) == (["later"], ["later"])
    earlier = await read(door, f"{M}/adr", DEV)
    assert (earlier["status"], earlier["superseded_by"]) == ("superseded", "later")
    assert (await read(door, f"{M}/later", DEV))["supersedes"] == "adr"
    await said(door, f"{K}/adr/restore", {}, LEAD)
    assert "superseded_by" not in await read(door, f"{M}/adr", DEV)


async def test_an_earlier_version_whose_later_one_is_retired_waits_for_somebody_to_restore_it(door: Door) -> None:
    await propose(door)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    await propose(door, DEV, id="later", content="PostgreSQL 18", supersedes="adr")
    await said(door, f"{M}/later/approve", {}, LEAD)
    await retired(door, LEAD, "later")
    earlier = await read(door, f"{M}/adr", DEV)
    assert (earlier["status"], earlier["superseded_by"], await listed(door)) == ("superseded", "later", [])
    await said(door, f"{K}/adr/restore", {}, LEAD)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    assert (await found(door), await listed(door)) == (["adr"], ["adr"])


@pytest.mark.parametrize(("sure", "in_force"), [(0.71, True), (0.7, False), (0.3, False)])
async def test_a_later_version_that_is_less_sure_by_a_fifth_is_in_conflict(
    door: Door, sure: float, in_force: bool
) -> None:
    await propose(door, confidence=0.9)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    await propose(door, DEV, id="later", content="MySQL", supersedes="adr", confidence=sure)
    decided = await said(door, f"{M}/later/approve", {}, LEAD)
    assert (decided["superseded"] == "adr", decided["conflict"] is None) == (in_force, in_force)
    if in_force:
        return
    conflict = (await read(door, "/api/conflicts", LEAD))["results"][0]
    assert (conflict["id"], conflict["first"], conflict["second"]) == (decided["conflict"], "adr", "later")
    assert set(await listed(door)) == {"adr", "later"}
    await said(door, f"/api/conflicts/{conflict['id']}/resolve", {"winner": "adr"}, LEAD)
    assert await listed(door) == ["adr"]


async def test_the_version_in_force_is_superseded_whatever_the_later_one_names(door: Door) -> None:
    await said(door, M, ADR | {"id": "q0"}, LEAD)
    for name in ("q1", "q2"):
        await propose(door, DEV, id=name, supersedes="q0")
    assert (await said(door, f"{M}/q1/approve", {}, LEAD))["superseded"] == "q0"
    assert (await said(door, f"{M}/q2/approve", {}, LEAD))["superseded"] == "q1"
    assert await listed(door) == ["q2"]


async def test_a_later_version_that_leaves_the_project_is_in_force_as_well(door: Door) -> None:
    await said(door, M, {"layer": "semantic", "content": "tabs", "id": "mine"}, ANN)
    await propose(door, supersedes="mine")
    answer = await door.put(f"{K}/adr", json={"scopes": ["user:alice"]}, headers=ANN)
    assert answer.json()["status"] == "active", answer.text
    await door.desk.view.wait_for(await door.head())
    assert (await read(door, f"{M}/mine", ANN))["superseded_by"] == "adr"


@pytest.mark.parametrize(
    ("method", "body", "status"),
    [("PUT", {"scopes": ["user:alice"]}, "active"), ("PUT", {"content": "c"}, "proposed"), ("DELETE", None, "retired")],
)
async def test_a_change_of_it_is_repeated_with_its_key_and_answers_the_same(
    door: Door, method: str, body: Any, status: str
) -> None:
    await said(door, M, {"layer": "semantic", "content": "tabs", "id": "mine"}, ANN)
    await propose(door, supersedes="mine")
    first = await door.request(method, f"{K}/adr", json=body, headers=ANN | KEY)
    assert first.json()["status"] == status, first.text
    await door.desk.view.wait_for(await door.head())
    assert (await asked_later(door, method, f"{K}/adr", body, ANN)).json() == first.json()


async def test_a_coordinator_does_not_act_as_the_project_that_they_see(door: Door) -> None:
    """What the project itself owns is changed by whoever asks as the project."""
    plan = {"id": "plan", "types": ["plan"], "content": "c", "scopes": ["project:ledger"], "owner": "project:ledger"}
    await said(door, K, plan, PROJECT)
    await propose(door, supersedes="plan")
    decided = await said(door, f"{M}/adr/approve", {}, {"X-Ledger-Agent": "lead"})
    assert (decided["superseded"], decided["conflict"] is None) == (None, False)
    assert (await read(door, f"{K}/plan", DEV))["status"] == "active"


async def test_an_item_that_names_itself_supersedes_nothing(door: Door) -> None:
    fact = KnowledgeSaved(
        types=["adr"], task="t", content="c", scopes=["project:ledger"], owner="user:alice",
        memory=Memory(layer="semantic", kind="adr"), supersedes="self",
    )  # fmt: skip
    await door.desk.ledger.append(NewEvent(fact, "self", "user:alice"))
    assert (await said(door, f"{M}/self/approve", {}, LEAD))["superseded"] is None


async def test_a_conflict_is_resolved_where_the_other_side_waits_for_approval(door: Door) -> None:
    await propose(door, confidence=0.9)
    await said(door, f"{M}/adr/approve", {}, LEAD)
    await propose(door, DEV, id="later", supersedes="adr", confidence=0.1)
    conflict = (await said(door, f"{M}/later/approve", {}, LEAD))["conflict"]
    assert (await door.put(f"{K}/adr", json={"content": "another"}, headers=ANN)).json()["status"] == "proposed"
    resolved = await said(door, f"/api/conflicts/{conflict}/resolve", {"winner": "later"}, LEAD)
    assert resolved["retired"] == "adr"
    assert (await read(door, f"{K}/adr", DEV))["status"] == "retired"


async def test_what_the_gate_refuses_for_a_role_taken_away_meanwhile_is_answered_as_refused(door: Door) -> None:
    """The decision is appended after the look at the roles, and another event stands between the two."""
    await propose(door)
    ledger = door.desk.ledger
    append = ledger.append

    async def later(event: NewEvent) -> Any:
        dismissed = ProjectMemberAssigned(member="agent:lead", roles=[])
        await append(NewEvent(dismissed, "ledger", "user:local"))
        return await append(event)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger, "append", later)
        answer = await door.post(f"{M}/adr/approve", json={}, headers=LEAD)
        saved = await door.post(M, json=ADR | {"id": "another"}, headers=LEAD)
    assert (saved.status_code, saved.json()["status"]) == (202, "proposed"), "no coordinator any more"
    assert "nothing was changed" in refusal(answer, 403, "not_owner")
    assert (await read(door, f"{M}/adr", DEV))["status"] == "proposed"


async def test_an_appointment_is_repeated_with_its_key_whatever_was_said_since(door: Door) -> None:
    path, key = "/api/projects/ledger/coordinators", {"Idempotency-Key": "one"}
    first = await said(door, path, {"entity": "agent:dev"}, key)
    await said(door, MEMBERS, {"entity": "agent:dev", "roles": ["tester"]}, OPERATOR)
    head = await door.head()
    assert await said(door, path, {"entity": "agent:dev"}, key) == first
    refusal(await door.post(path, json={"entity": "agent:x"}, headers=key), 422, "idempotency_mismatch")
    assert await door.head() == head


async def test_a_coordinator_reads_without_naming_the_project_what_waits_and_nothing_else(door: Door) -> None:
    plan = {"layer": "semantic", "content": "plan", "id": "plan", "scopes": ["project:ledger"]}
    await said(door, M, plan, ANN)
    await propose(door)
    alone = {"X-Ledger-Agent": "lead"}
    assert (await read(door, f"{M}/adr", alone))["status"] == "proposed"
    refusal(await door.get(f"{M}/plan", headers=alone), 404, "unknown_knowledge")
    await said(door, f"{M}/adr/approve", {}, alone)
    refusal(await door.get(f"{M}/adr", headers=alone), 404, "unknown_knowledge")


async def test_a_decision_is_repeated_with_its_key_after_its_author_closed_the_item(door: Door) -> None:
    await propose(door)
    key = LEAD | {"Idempotency-Key": "one"}
    first = await said(door, f"{M}/adr/approve", {}, key)
    assert (await door.put(f"{K}/adr", json={"scopes": ["user:alice"]}, headers=ANN)).is_success
    await door.desk.view.wait_for(await door.head())
    assert await said(door, f"{M}/adr/approve", {}, key) == first


async def test_a_later_version_of_ones_own_private_memory_is_in_force_at_once(door: Door) -> None:
    mine = {"layer": "semantic", "content": "tabs", "id": "mine"}
    await said(door, M, mine)
    saved = await said(door, M, mine | {"content": "blanks", "id": "later", "supersedes": "mine"})
    assert saved["status"] == "active"
    assert (await read(door, f"{K}/mine"))["superseded_by"] == "later"
    head = await door.head()
    assert (await said(door, M, mine | {"content": "blanks", "id": "later", "supersedes": "mine"}))["duplicate"]
    assert await door.head() == head


@pytest.mark.parametrize("at_once", [False, True], ids=["alone", "in a bulk"])
async def test_a_later_version_of_ones_own_that_is_restored_is_in_force_alone(door: Door, at_once: bool) -> None:
    mine = {"layer": "semantic", "content": "tabs", "id": "mine"}
    await said(door, M, mine)
    await said(door, M, mine | {"content": "blanks", "id": "later", "supersedes": "mine"})
    assert (await door.delete(f"{K}/later", headers=ALICE)).is_success
    await said(door, f"{K}/mine/restore")
    assert await listed(door, ALICE) == ["mine"]
    if at_once:
        await said(door, f"{K}/bulk", {"action": "restore", "ids": ["later"], "dry_run": False})
    else:
        answer = await said(door, f"{K}/later/restore", who=ALICE | KEY)
        assert answer["position"] == await door.head()
        assert (await asked_later(door, "POST", f"{K}/later/restore", None, ALICE)).json() == answer
    assert await listed(door, ALICE) == ["later"]
    assert (await read(door, f"{K}/mine"))["superseded_by"] == "later"


async def test_nobody_supersedes_what_they_do_not_see_or_may_not_change(door: Door) -> None:
    await said(door, M, {"layer": "semantic", "content": "tabs", "id": "mine"})
    await said(door, M, {"layer": "semantic", "content": "tabs", "id": "open", "scopes": ["public"]})
    head = await door.head()
    body = {"layer": "semantic", "content": "blanks"}
    refusal(await door.post(M, json=body | {"supersedes": "mine"}, headers=BOB), 404, "unknown_knowledge")
    refusal(await door.post(M, json=body | {"supersedes": "none"}, headers=BOB), 404, "unknown_knowledge")
    refusal(await door.post(M, json=body | {"supersedes": "open"}, headers=BOB), 403, "not_owner")
    batch = {"items": [{"content": "c", "types": ["t"], "supersedes": "open"}]}
    (outcome,) = (await said(door, f"{K}/batch", batch))["results"]
    assert outcome["error"]["code"] == "invalid_payload"
    assert await door.head() == head


async def test_a_coordinator_who_may_not_change_the_earlier_version_finds_a_conflict(door: Door) -> None:
    await said(door, M, {"layer": "semantic", "content": "tabs", "id": "open", "scopes": ["public"]}, BOB)
    await propose(door, supersedes="open")
    decided = await said(door, f"{M}/adr/approve", {}, LEAD)
    assert decided["superseded"] is None
    assert "user:bob owns" in (await read(door, "/api/conflicts", LEAD))["results"][0]["reason"]
    assert (await read(door, f"{K}/open"))["status"] == "active"


async def test_roles_are_given_by_the_operator_and_by_coordinators(door: Door) -> None:
    await said(door, MEMBERS, {"entity": "agent:dev", "roles": ["developer"]}, LEAD)
    refusal(await door.post(MEMBERS, json={"entity": "agent:x", "roles": []}, headers=DEV), 403, "not_owner")
    refusal(
        await door.post("/api/projects/ledger/coordinators", json={"entity": "agent:dev"}, headers=DEV),
        403,
        "not_owner",
    )
    appointed = await said(door, "/api/projects/ledger/coordinators", {"entity": "agent:dev"}, LEAD)
    assert appointed["roles"] == ["coordinator", "developer"]
    members = (await read(door, MEMBERS, ANN))["members"]
    assert {each["member"]: (each["roles"], each["actor"]) for each in members} == {
        "agent:dev": (["coordinator", "developer"], "agent:lead"),
        "agent:lead": (["coordinator"], "user:local"),
    }
    refusal(await door.get(MEMBERS, headers=BOB), 403, "not_owner")
    assert (await read(door, MEMBERS, {"X-Ledger-Agent": "lead"}))["members"] == members
    await said(door, MEMBERS, {"entity": "agent:lead", "roles": []}, OPERATOR)
    refusal(await door.post(MEMBERS, json={"entity": "agent:x", "roles": []}, headers=LEAD), 403, "not_owner")
    for wrong in ("team:web", "lead"):
        asked: JsonObject = {"entity": wrong, "roles": []}
        refusal(await door.post(MEMBERS, json=asked, headers=OPERATOR), 422, "illegal_scope")
    king = {"entity": "agent:x", "roles": ["king"]}
    refusal(await door.post(MEMBERS, json=king, headers=OPERATOR), 422, "invalid_payload")


async def test_a_member_with_roles_proposes_the_kinds_of_these_roles(door: Door) -> None:
    await said(door, MEMBERS, {"entity": "agent:dev", "roles": ["tester"]}, LEAD)
    head = await door.head()
    assert "architect" in refusal(await door.post(M, json=ADR, headers=DEV), 403, "not_owner")
    batch = {"items": [{"content": "c", "types": ["adr"], "scopes": ["project:ledger"],
                        "memory": {"layer": "semantic", "kind": "adr"}}]}  # fmt: skip
    (outcome,) = (await said(door, f"{K}/batch", batch, DEV))["results"]
    assert outcome["error"]["code"] == "not_owner"
    assert await door.head() == head
    await propose(door, DEV, kind="known_issue")


async def test_a_batch_says_which_of_its_items_are_proposals(door: Door) -> None:
    shared: JsonObject = {
        "types": ["adr"],
        "scopes": ["project:ledger"],
        "memory": {"layer": "semantic", "kind": "adr"},
    }
    items = [{"content": "wait", **shared}, {"content": "own", "types": ["tool"]}, {"content": "wait", **shared}]
    results = (await said(door, f"{K}/batch", {"items": items}, ANN))["results"]
    assert [(one["outcome"], one.get("status")) for one in results] == [
        ("saved", "proposed"),
        ("saved", None),
        ("unchanged", "proposed"),
    ]
    adr = results[0]["id"]
    assert (await read(door, f"{K}/{adr}", ANN))["status"] == "proposed"
    again = (await said(door, f"{K}/batch", {"items": items}, ANN))["results"]
    assert [(one["outcome"], one.get("status")) for one in again] == [
        ("unchanged", "proposed"),
        ("unchanged", None),
        ("unchanged", "proposed"),
    ]
    await said(door, f"{M}/{adr}/approve", {}, LEAD)
    again = (await said(door, f"{K}/batch", {"items": items[:1]}, ANN))["results"]
    assert [(one["outcome"], one.get("status")) for one in again] == [("unchanged", None)]
    of_the_lead = [{**items[0], "content": "holds"}]
    assert "status" not in (await said(door, f"{K}/batch", {"items": of_the_lead}, LEAD))["results"][0]


async def test_a_list_is_narrowed_to_what_is_meant_for_a_role(door: Door) -> None:
    for kind in ("project_context", "adr", "convention", "known_issue", "user_preference", "habit"):
        body = {"layer": "semantic", "id": kind, "kind": kind, "content": "c", "scopes": ["project:ledger"]}
        await said(door, M, body, LEAD)
    everybody = {"project_context", "user_preference", "habit"}
    assert set(await listed(door, role="operations")) == {*everybody, "known_issue"}
    assert set(await listed(door, role="developer")) == {*everybody, "adr", "convention", "known_issue"}
    assert set(await listed(door, role="tester")) == {*everybody, "adr"}
    assert len(await listed(door, role="coordinator")) == len(await listed(door)) == 6
    refusal(await door.get(M, params={"role": "king"}, headers=DEV), 422, "invalid_payload")


async def test_another_project_neither_reads_nor_counts_what_is_proposed(door: Door) -> None:
    await propose(door)
    other = {"X-Ledger-Agent": "dev", "X-Ledger-Project": "other"}
    assert await listed(door, other, status="proposed") == []
    assert (await read(door, f"{M}/health", other))["proposed"] == 0
    assert (await read(door, f"{M}/health", DEV))["proposed"] == 1
    refusal(await door.get(f"{M}/adr", headers=other), 404, "unknown_knowledge")


@pytest.mark.parametrize("status", ["proposed", "merged", "rejected"])
async def test_what_the_gate_refuses_for_its_status_the_door_refuses_too(door: Door, status: str) -> None:
    await propose(door)
    if status == "rejected":
        await said(door, f"{M}/adr/reject", {}, LEAD)
    if status == "merged":
        await said(door, f"{M}/adr/approve", {}, LEAD)
        await door.desk.ledger.append(NewEvent(KnowledgeMerged(into="x", slim="s"), "adr", "user:alice"))
        await door.desk.view.wait_for(await door.head())
    head = await door.head()
    refusal(await door.post(f"{K}/adr/restore", json={}, headers=ANN), 409, "illegal_state")
    assert await door.head() == head


async def test_alice_without_the_project_still_owns_what_she_proposed(door: Door) -> None:
    await propose(door)
    assert (await read(door, f"{M}/adr", ALICE))["status"] == "proposed"
    await retired(door, ALICE)
