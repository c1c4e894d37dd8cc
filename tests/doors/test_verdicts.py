"""Thousands of verdicts of one request: each is judged by itself, in its place, and nothing is sent after an error."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence

import orjson
import pytest

from kledger.contract.errors import BrokerUnavailable, IdempotencyMismatch
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import FeedbackRequest, SaveRequest
from ledger.event import NO_LINEAGE, Appended, JsonObject, NewEvent
from ledger.readers import Judge
from producers.operations.knowledge import saving, verdicts
from tests.doors.live_desk import LiveDesk, live_desk

ALICE = Caller(user="alice")
MANY = verdicts.UNDER_WAY * verdicts.KEPT_AT_ONCE + 10


@pytest.fixture
async def desk() -> AsyncIterator[LiveDesk]:
    async with live_desk() as opened:
        yield opened


async def saved_id(desk: LiveDesk) -> str:
    request = SaveRequest.model_validate({"task": "t", "content": "c", "type": "tool"})
    return (await saving.save(desk, ALICE, NO_LINEAGE, request))["id"]


def verdict(item_id: str, number: int) -> JsonObject:
    return {"knowledge_id": item_id, "is_helpful": True, "case": {"task": f"task {number}"}}


async def test_each_verdict_is_judged_in_its_place_whichever_thousand_it_is_in(desk: LiveDesk) -> None:
    item_id = await saved_id(desk)
    said = [verdict(item_id, number) for number in range(MANY)]
    unknown, malformed = (0, 1_001, MANY - 1), (7, 2_500)
    for number in unknown:
        said[number]["knowledge_id"] = "knowledge-nobody-saved"
    for number in malformed:
        said[number]["is_helpful"] = "perhaps"
    told = await verdicts.rate_many(desk, ALICE, NO_LINEAGE, FeedbackRequest(feedback_list=said))
    assert {refused["index"]: refused["error"]["code"] for refused in told["refused"]} == dict(
        sorted({**dict.fromkeys(unknown, "unknown_knowledge"), **dict.fromkeys(malformed, "invalid_payload")}.items())
    )
    kept = [orjson.loads(event.body) async for events in desk.ledger.read(2) for event in events]
    left = [number for number in range(MANY) if number not in (*unknown, *malformed)]
    numbers = [int(event["data"]["case"]["task"].removeprefix("task ")) for event in kept]
    assert sorted(numbers) == left
    for thousand in range(MANY // verdicts.KEPT_AT_ONCE + 1):
        of_it = [number for number in numbers if number // verdicts.KEPT_AT_ONCE == thousand]
        assert of_it == sorted(of_it)
    assert len({event["id"] for event in kept}) == told["updated"] == len(left)
    assert told["position"] == 1 + len(left)


async def test_an_item_that_comes_into_the_view_while_it_is_looked_for_is_no_unknown_one(
    desk: LiveDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_id = await saved_id(desk)
    look, looks = verdicts._Judging._query, iter((True,))

    async def too_early(judging: verdicts._Judging, ids: set[str]) -> dict[str, Judge]:
        if next(looks, False):  # asked before the item was there, answered after
            await desk.view.wait_for(1)
            return {}
        return await look(judging, ids)

    monkeypatch.setattr(verdicts._Judging, "_query", too_early)
    told = await verdicts.rate_many(desk, ALICE, NO_LINEAGE, FeedbackRequest(feedback_list=[verdict(item_id, 1)]))
    assert (told["updated"], told["refused"]) == (1, [])


async def test_nothing_more_is_sent_once_an_error_was_told(desk: LiveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    item_id = await saved_id(desk)
    plain, asked = desk.ledger.append_many, list[int]()
    others_wait = asyncio.Event()

    async def append_many(events: Sequence[NewEvent]) -> list[Appended]:
        asked.append(len(events))
        if len(asked) == 1:
            raise BrokerUnavailable("the disk is full")
        await others_wait.wait()
        return await plain(events)

    monkeypatch.setattr(desk.ledger, "append_many", append_many)
    request = FeedbackRequest(feedback_list=[verdict(item_id, number) for number in range(MANY)])
    with pytest.raises(BrokerUnavailable):
        await verdicts.rate_many(desk, ALICE, NO_LINEAGE, request)
    others_wait.set()
    assert len(asked) == verdicts.UNDER_WAY  # those beside the first were ended, and the last was never sent
    assert (await desk.ledger.head()).position == 1
    assert not [task for task in asyncio.all_tasks() if "_append" in repr(task)]


async def test_a_batch_that_was_cut_short_is_completed_by_its_key_and_by_no_other_batch(
    desk: LiveDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    item_id, retry = await saved_id(desk), uuid.uuid4()
    plain, whole = desk.ledger.append_many, asyncio.Event()

    async def append_many(events: Sequence[NewEvent]) -> list[Appended]:
        if whole.is_set():
            raise BrokerUnavailable("the disk is full")
        whole.set()
        return await plain(events)

    said = [verdict(item_id, number) for number in range(MANY)]
    with monkeypatch.context() as cut:
        cut.setattr(desk.ledger, "append_many", append_many)
        with pytest.raises(BrokerUnavailable):
            await verdicts.rate_many(desk, ALICE, NO_LINEAGE, FeedbackRequest(feedback_list=said), retry)
    head = (await desk.ledger.head()).position
    assert head == 1 + verdicts.KEPT_AT_ONCE
    await desk.view.wait_for(head)
    others = [said[: verdicts.KEPT_AT_ONCE], said[:-1], [*said, said[0]], [said[1], said[0], *said[2:]]]
    for other in others:
        with pytest.raises(IdempotencyMismatch):
            await verdicts.rate_many(desk, ALICE, NO_LINEAGE, FeedbackRequest(feedback_list=other), retry)
    assert (await desk.ledger.head()).position == head
    for _ in range(2):
        told = await verdicts.rate_many(desk, ALICE, NO_LINEAGE, FeedbackRequest(feedback_list=said), retry)
        assert (told["updated"], told["refused"], told["position"]) == (MANY, [], 1 + MANY)
        await desk.view.wait_for(told["position"])
    assert (await desk.ledger.head()).position == 1 + MANY
