"""What contradicts a memory of the same owner revises it; anything else is a conflict, which its owner resolves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Literal, cast

import pytest

from consumers.reactors.extracted import events_of
from consumers.reactors.findings import Finding, Judgement, Verdict
from consumers.reactors.work import ProcessState, Work
from kledger.contract.knowledge import Case
from ledger.event import JsonObject, NewEvent
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRevised, KnowledgeSaved
from ledger.events.usage import Usage
from projections.views.processes.ask import Process
from tests.doors.http_door import ALICE, BOB, Door, http_door, refusal
from tests.memory.test_health import SURE, UNSURE, contradict
from tests.memory.test_short_memories import K, M, over, read, said

Says = Literal["conflict", "duplicate"]
RESOLVE = "/api/conflicts/conflict-1/resolve"
KNOWN: JsonObject = {"id": "known", "task": "t", "content": "at eight", "version": 2, "owner": "user:ann", "scopes": []}
MEMORY: JsonObject = KNOWN | {"memory": {"layer": "semantic"}}


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        await said(opened, M, SURE)
        await said(opened, M, UNSURE)
        await contradict(opened, "sure", "unsure")
        yield opened


def found(
    *known: JsonObject,
    verdict: Says = "conflict",
    scopes: Sequence[str] = ("user:ann",),
    unchanged: Mapping[str, int] | None = None,
) -> list[NewEvent]:
    """The events of an extraction of ann's whose findings each contradict, or are, what is known."""
    requested = {"owner": "user:ann", "scopes": list(scopes), "messages": [{"id": "m1"}], "kind": "statement"}
    process = Process(
        kind="extraction", id="extraction-1", owner="user:ann", stage="started", outcome=None,
        said={"requested": requested}, requested_position=1, requested_event="e", requested_us=1, updated_us=1,
        position=2, trace_id=None,
    )  # fmt: skip
    findings = [
        Finding(type="definition", task="opens", content=f"at nine {n}", category="", domain="", message_ids=["m1"])
        for n in range(len(known))
    ]
    verdicts = [Verdict(item=n, verdict=verdict, known=each["id"], reason="r") for n, each in enumerate(known)]
    work = Work("default", *cast("tuple[Any, Any, Any, Any, Any]", (None,) * 5))
    usage = Usage(model="m", prompt_version="1")
    return events_of(
        work,
        ProcessState(process, 2),
        findings,
        {n: [each] for n, each in enumerate(known)},
        Judgement(verdicts=verdicts),
        usage,
        held={},
        traces={},
        unchanged={each["id"]: 1 for each in known} if unchanged is None else unchanged,
    )


def test_what_its_owner_changed_while_the_model_worked_is_not_revised() -> None:
    saved, conflict, completed = found(MEMORY, unchanged={})
    assert saved.fact.name == "knowledge.saved"
    assert getattr(conflict.fact, "first", "") == "known"
    assert [each.action for each in getattr(completed.fact, "items", ())] == ["conflict"]
    revised, _ = found(MEMORY, unchanged={"known": 7})
    assert (revised.fact.name, revised.expects) == ("knowledge.revised", 7)


def names(events: list[NewEvent]) -> list[str]:
    return [event.fact.name for event in events]


def test_what_contradicts_a_memory_of_the_same_owner_is_its_next_version() -> None:
    revised, completed = found(MEMORY)
    assert (revised.entity_id, revised.actor) == ("known", "user:ann")
    assert isinstance(revised.fact, KnowledgeRevised)
    assert (revised.fact.content, revised.fact.reason) == ("at nine 0", "r")
    assert [each.model_dump() for each in getattr(completed.fact, "items", ())] == [
        {"knowledge_id": "known", "action": "revised"}
    ]


@pytest.mark.parametrize("known", [KNOWN, MEMORY | {"owner": "user:bob"}], ids=["plain knowledge", "of another owner"])
def test_what_contradicts_anything_else_is_a_conflict(known: JsonObject) -> None:
    assert names(found(known)) == ["knowledge.saved", "conflict.recorded", "extraction.completed"]


def test_a_memory_is_revised_once_in_an_extraction() -> None:
    assert names(found(MEMORY, MEMORY)) == [
        *("knowledge.revised", "knowledge.saved", "conflict.recorded", "extraction.completed"),
    ]


def test_what_stays_is_saved_beside_a_short_memory_with_which_it_would_be_over() -> None:
    short = KNOWN | {"memory": {"layer": "short", "kind": "decision", "lifetime": 60}}
    saved, _ = found(short, verdict="duplicate")
    assert isinstance(saved.fact, KnowledgeSaved)
    assert (saved.fact.content, saved.fact.memory) == ("at nine 0", None)
    assert names(found(short)) == ["knowledge.saved", "conflict.recorded", "extraction.completed"]
    assert names(found(MEMORY, verdict="duplicate")) == ["knowledge.confirmed", "extraction.completed"]


TEAM: JsonObject = {"scopes": ["user:ann", "team:web"]}
SHARED: JsonObject = {"acl": [{"entity": "user:bob", "permission": "read"}]}


@pytest.mark.parametrize("readers", [TEAM, SHARED, {"scopes": ["public"]}], ids=["a team", "an ACL", "everybody"])
def test_what_was_said_alone_is_told_to_no_other_reader_of_a_memory(readers: JsonObject) -> None:
    assert names(found(MEMORY | readers)) == ["knowledge.saved", "conflict.recorded", "extraction.completed"]
    for known in (MEMORY | readers, KNOWN | {"owner": "user:bob", "scopes": ["public"]}):
        confirmed, _ = found(known, verdict="duplicate")
        assert isinstance(confirmed.fact, KnowledgeConfirmed)
        assert confirmed.fact.case == Case(), "evidence without a word"


@pytest.mark.parametrize("scopes", [("user:ann", "team:web"), ("public",)], ids=["the team's", "everybody's"])
def test_what_was_said_for_all_readers_of_a_memory_is_told_to_them(scopes: Sequence[str]) -> None:
    assert names(found(MEMORY | TEAM, scopes=scopes)) == ["knowledge.revised", "extraction.completed"]
    confirmed, _ = found(MEMORY | TEAM, verdict="duplicate", scopes=scopes)
    assert isinstance(confirmed.fact, KnowledgeConfirmed)
    assert confirmed.fact.case.outcome == "at nine 0"


async def test_one_side_is_kept_and_the_other_can_be_brought_back(door: Door) -> None:
    kept = await said(door, RESOLVE, {"winner": "sure"})
    assert (kept["winner"], kept["retired"], kept["merged"]) == ("sure", "unsure", False)
    assert (await read(door, f"{M}/unsure"))["status"] == "retired"
    await said(door, f"{K}/unsure/restore")
    assert (await read(door, f"{M}/unsure"))["status"] == "active"


async def test_a_side_that_is_out_of_recall_cannot_hold(door: Door) -> None:
    assert (await door.delete(f"{K}/sure", headers=ALICE)).is_success
    await said(door, M, {"id": "mood", "layer": "short", "content": "p", "lifetime": 1})
    await contradict(door, "mood", "unsure", "conflict-2")
    await over(door)
    head = await door.head()
    for conflict, winner, status in (("conflict-1", "sure", "retired"), ("conflict-2", "mood", "expired")):
        for merge in ({}, {"merge": {"content": "both"}}):
            path = f"/api/conflicts/{conflict}/resolve"
            answer = await door.post(path, json={"winner": winner} | merge, headers=ALICE)
            assert f"{winner} is {status}" in refusal(answer, 409, "illegal_state")
    assert await door.head() == head
    assert (await read(door, f"{M}/unsure"))["status"] == "active"
    await said(door, f"{K}/sure/restore")
    assert (await said(door, RESOLVE, {"winner": "sure"}))["retired"] == "unsure"
    other = await said(door, "/api/conflicts/conflict-2/resolve", {"winner": None})
    assert (other["winner"], other["retired"]) == (None, None)


async def test_both_sides_are_kept(door: Door) -> None:
    kept = await said(door, RESOLVE, {"winner": None})
    assert (kept["winner"], kept["retired"], kept["merged"]) == (None, None, False)
    assert (await read(door, M))["total"] == 2


async def test_both_sides_are_merged_into_one_and_taken_apart_again(door: Door) -> None:
    merged = await said(door, RESOLVE, {"winner": "sure", "merge": {"content": "sure, mostly"}, "reason": "both"})
    assert (merged["winner"], merged["retired"], merged["merged"]) == ("sure", "unsure", True)
    now = await read(door, f"{M}/sure")
    assert (now["content"], now["layer"], now["version"]) == ("sure, mostly", "semantic", 2)
    assert now["task"] == "sure, mostly", "it was made from the content, and is made anew"
    assert (await read(door, M))["total"] == 1
    await said(door, f"{K}/sure/revert", {"to_version": 1})
    await said(door, f"{K}/unsure/restore")
    assert {each["content"] for each in (await read(door, M))["results"]} == {"sure", "unsure"}


@pytest.mark.parametrize(
    ("body", "who", "status", "code"),
    [
        ({"merge": {"content": "both"}}, ALICE, 422, "invalid_payload"),
        ({"winner": "sure", "merge": {"content": ""}}, ALICE, 422, "invalid_payload"),
        ({"winner": "sure", "merge": {"text": "both"}}, ALICE, 422, "invalid_payload"),
        ({"winner": "other", "merge": {"content": "both"}}, ALICE, 422, "invalid_payload"),
        ({"winner": "sure", "merge": {"content": "both"}}, BOB, 404, "unknown_process"),
    ],
)
async def test_a_merge_that_names_no_side_or_is_a_strangers_changes_nothing(
    door: Door, body: JsonObject, who: dict[str, str], status: int, code: str
) -> None:
    head = await door.head()
    refusal(await door.post(RESOLVE, json=body, headers=who), status, code)
    assert await door.head() == head


async def test_nobody_merges_into_what_they_do_not_own(door: Door) -> None:
    await said(door, M, {"id": "bobs", "layer": "semantic", "content": "b", "scopes": ["public"]}, BOB)
    await contradict(door, "sure", "bobs", "conflict-2")
    head = await door.head()
    body = {"winner": "bobs", "merge": {"content": "mine"}}
    refusal(await door.post("/api/conflicts/conflict-2/resolve", json=body, headers=ALICE), 403, "not_owner")
    assert await door.head() == head
