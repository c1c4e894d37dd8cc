"""Many events are appended in batches of which one is sent ahead: in order, and none after one that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import orjson
import pytest
from nats.aio.msg import Msg

from kledger.contract.errors import LedgerError, PayloadTooLarge, VersionConflict
from ledger.broker.connection import BrokerConnection
from ledger.event import NewEvent
from ledger.store.atomic_batch import MAX_BYTES, MAX_MESSAGES
from ledger.store.jetstream import OPEN_BATCHES, JetStreamLedger
from tests.patience import PATIENCE

Make = Callable[..., NewEvent]


async def stored_ids(ledger: JetStreamLedger) -> list[str]:
    return [orjson.loads(event.body)["id"] async for events in ledger.read() for event in events]


def many(new_saved: Make, name: str, count: int, **about: object) -> list[NewEvent]:
    return [new_saved(f"{name}-{n}", **about) for n in range(count)]


async def test_each_of_many_lists_appended_at_once_is_stored_in_its_order(
    jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    lists = [many(new_saved, f"list-{n}", MAX_MESSAGES + 50) for n in range(12)]
    async with asyncio.timeout(PATIENCE):
        appended = await asyncio.gather(*map(jetstream_ledger.append_many, lists))
    stored = await stored_ids(jetstream_ledger)
    assert len(stored) == sum(map(len, lists))
    for events, answers in zip(lists, appended, strict=True):
        positions = [answer.position for answer in answers]
        assert positions == sorted(positions)
        assert [stored[position - 1] for position in positions] == [event.id for event in events]


def failing(kind: str, new_saved: Make) -> tuple[list[NewEvent], type[LedgerError], int]:
    """Three batches with something wrong in the second: the events, the error, and how many are stored."""
    events = many(new_saved, kind, 2 * MAX_MESSAGES + 50)
    wrong, error = MAX_MESSAGES + 700, VersionConflict
    if kind == "too large":
        events[wrong] = new_saved("large", content="x" * 1_100_000)
        return events, PayloadTooLarge, MAX_MESSAGES
    if kind == "a lost race":
        events[wrong] = replace(events[wrong], expects=1)
    else:
        events[wrong] = new_saved(events[wrong - 1].entity_id, expects=MAX_MESSAGES + 700)
    return events, error, MAX_MESSAGES


@pytest.mark.parametrize("kind", ["too large", "a lost race", "an expectation within the batch"])
async def test_what_fails_leaves_the_batches_before_it_and_no_batch_open_at_the_broker(
    kind: str, jetstream_ledger: JetStreamLedger, admin: BrokerConnection, new_saved: Make
) -> None:
    abandoned: asyncio.Queue[str] = asyncio.Queue()

    async def told(message: Msg) -> None:
        abandoned.put_nowait(orjson.loads(message.data)["reason"])

    await admin.client.subscribe("$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.>", cb=told)
    await admin.client.flush()
    events, error, kept = failing(kind, new_saved)
    with pytest.raises(error):
        await jetstream_ledger.append_many(events)
    assert await stored_ids(jetstream_ledger) == [event.id for event in events[:kept]]
    async with asyncio.timeout(PATIENCE):
        assert await abandoned.get() == "incomplete"  # at once, not after the ten seconds that the broker waits
    events = [event for event in events if event.expects is None and event.entity_id != "large"]
    answers = await jetstream_ledger.append_many(events)
    assert [answer.duplicate for answer in answers] == [True] * kept + [False] * (len(events) - kept)


async def test_a_batch_ends_before_it_has_more_bytes_than_the_broker_takes(
    jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    events = many(new_saved, "big", MAX_BYTES // 1_000_000 + 3, content="x" * 1_000_000)
    answers = await jetstream_ledger.append_many(events)
    assert [answer.position for answer in answers] == list(range(1, len(events) + 1))
    assert await stored_ids(jetstream_ledger) == [event.id for event in events]


async def test_lists_whose_events_are_still_to_be_changed_keep_no_other_list_from_the_log(
    jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    """As while a person is forgotten: what is said of them waits before it is sealed, and what others say goes on."""
    waiting, may = asyncio.Semaphore(0), asyncio.Event()

    async def held_back(events: Sequence[NewEvent]) -> Sequence[NewEvent]:
        if events:
            waiting.release()
            await may.wait()
        return events

    lists = [many(new_saved, f"list-{n}", 2) for n in range(2 * OPEN_BATCHES)]
    appends = [asyncio.create_task(jetstream_ledger.append_changed(events, held_back)) for events in lists]
    async with asyncio.timeout(PATIENCE):
        for _ in range(OPEN_BATCHES):
            await waiting.acquire()
        other = await jetstream_ledger.append_many(many(new_saved, "other", 2))
        assert [answer.position for answer in other] == [1, 2]
        may.set()
        await asyncio.gather(*appends)
    assert (await jetstream_ledger.head()).position == 2 + 2 * len(lists)
