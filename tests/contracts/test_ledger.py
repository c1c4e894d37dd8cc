"""What every ledger does, in memory or on the broker: the docstrings of ledger/stream.py, held to the word."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kledger.contract.errors import IllegalSubject, LogGap, PayloadTooLarge, SubjectForgotten, VersionConflict
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved
from ledger.store.in_memory import MemoryLedger
from ledger.stream import ChangingLedger, Ledger
from ledger.wire.envelope import decode_envelope, decode_fact
from ledger.wire.subjects import parse_subject
from tests.examples import tries
from tests.patience import PATIENCE

Make = Callable[..., NewEvent]


async def everything(ledger: Ledger, start: int = 1, batch: int = 1_000) -> list[StoredEvent]:
    """All events from a position to the head."""
    return [event async for events in ledger.read(start, batch=batch) for event in events]


def ids(events: list[StoredEvent]) -> list[str]:
    return [orjson.loads(event.body)["id"] for event in events]


async def test_positions_count_from_one_without_gaps(ledger: Ledger, new_saved: Make) -> None:
    appended = [await ledger.append(new_saved(f"item-{n}")) for n in range(5)]
    assert [a.position for a in appended] == [1, 2, 3, 4, 5]
    assert not any(a.duplicate for a in appended)


async def test_an_acknowledged_event_is_read_back_as_it_was_written(ledger: Ledger, new_saved: Make) -> None:
    before = time.time_ns()
    event = new_saved("知识 1", content="用 `make test` 运行测试 🙂", actor="agent:研究.员*>")
    appended = await ledger.append(event)
    (stored,) = await everything(ledger)
    assert stored.position == appended.position
    assert before - 5_000_000_000 < stored.stored_ns < time.time_ns() + 5_000_000_000
    parts = parse_subject(stored.subject)
    assert (parts.entity, parts.entity_id, parts.event) == ("knowledge", "知识 1", "saved")
    assert parts.actor == "agent:研究.员*>"
    envelope = decode_envelope(stored.body)
    assert envelope.id == event.id
    assert decode_fact(envelope) == event.fact


async def test_an_empty_ledger_has_head_zero_and_nothing_to_read(ledger: Ledger) -> None:
    assert await ledger.head() == (0, 0)
    assert await everything(ledger) == []
    assert await ledger.append_many([]) == []
    assert await ledger.last_position_of("default", "knowledge", "none") == 0


async def test_a_retried_append_is_kept_once_and_named_a_duplicate(ledger: Ledger, new_saved: Make) -> None:
    event = new_saved("item-1")
    first = await ledger.append(event)
    await ledger.append(new_saved("item-2"))
    again = await ledger.append(event)
    assert (again.position, again.event_id, again.duplicate) == (first.position, event.id, True)
    assert (await ledger.head()).position == 2


async def test_a_retried_append_with_an_expectation_is_a_duplicate_not_a_conflict(
    ledger: Ledger, new_saved: Make
) -> None:
    event = new_saved("item-1", expects=0)
    first = await ledger.append(event)
    assert await ledger.append(event) == first._replace(duplicate=True)
    for _ in range(3):  # even when the history has moved on since
        await ledger.append(new_saved("item-1"))
    assert await ledger.append(event) == first._replace(duplicate=True)
    assert (await ledger.head()).position == 4


async def test_an_append_that_expects_another_last_position_is_refused(ledger: Ledger, new_saved: Make) -> None:
    first = await ledger.append(new_saved("item-1", expects=0))
    with pytest.raises(VersionConflict) as conflict:
        await ledger.append(new_saved("item-1", expects=0))
    assert "item-1" in conflict.value.message
    assert conflict.value.details["last"] == first.position
    second = await ledger.append(new_saved("item-1", expects=first.position))
    with pytest.raises(VersionConflict):
        await ledger.append(new_saved("item-1", expects=first.position))
    with pytest.raises(VersionConflict):
        await ledger.append(new_saved("item-1", expects=second.position + 7))
    assert (await ledger.head()).position == 2


async def test_expectations_look_at_one_entity_whoever_wrote_whatever_about_it(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append(new_saved("item-2"))
    await ledger.append(new_saved("item-1", org="other"))
    saved = await ledger.append(new_saved("item-1", expects=0))
    rating = NewEvent(KnowledgeRated(verdict="helpful"), "item-1", "user:bob", expects=saved.position)
    rated = await ledger.append(rating)
    assert await ledger.last_position_of("default", "knowledge", "item-1") == rated.position
    assert await ledger.last_position_of("other", "knowledge", "item-1") == 2
    assert await ledger.last_position_of("default", "profile", "item-1") == 0
    for after, found in ((0, saved), (saved.position - 1, saved), (saved.position, rated)):
        assert await ledger.next_position_of("default", "knowledge", "item-1", after) == found.position
    assert await ledger.next_position_of("default", "knowledge", "item-1", rated.position) == 0
    assert await ledger.next_position_of("default", "knowledge", "item", 0) == 0


async def test_of_many_writers_who_expect_the_same_position_exactly_one_succeeds(
    ledger: Ledger, new_saved: Make
) -> None:
    events = [new_saved("item-1", expects=0) for _ in range(20)]
    results = await asyncio.gather(*(ledger.append(event) for event in events), return_exceptions=True)
    kept = [result for result in results if not isinstance(result, BaseException)]
    assert len(kept) == 1
    assert all(isinstance(r, VersionConflict) for r in results if isinstance(r, BaseException))
    assert (await ledger.head()).position == 1


async def test_many_tasks_may_append_at_once(ledger: Ledger, new_saved: Make) -> None:
    singles = [ledger.append(new_saved(f"single-{n}")) for n in range(100)]
    lots = [ledger.append_many([new_saved(f"lot-{lot}-{n}") for n in range(300)]) for lot in range(12)]
    kept, kept_lots = await asyncio.gather(asyncio.gather(*singles), asyncio.gather(*lots))
    positions = [a.position for lot in [kept, *kept_lots] for a in lot]
    assert sorted(positions) == list(range(1, 3_701))
    for lot in kept_lots:
        assert [a.position for a in lot] == list(range(lot[0].position, lot[0].position + 300))
    assert [event.position for event in await everything(ledger)] == list(range(1, 3_701))


async def test_2500_events_are_kept_in_order_and_a_retry_keeps_none_twice(ledger: Ledger, new_saved: Make) -> None:
    events = [new_saved(f"item-{n}", expects=0) for n in range(2_500)]
    first = await ledger.append_many(events)
    assert [(a.position, a.event_id, a.duplicate) for a in first] == [
        (n, event.id, False) for n, event in enumerate(events, 1)
    ]
    again = await ledger.append_many(events)
    assert again == [a._replace(duplicate=True) for a in first]
    assert ids(await everything(ledger)) == [event.id for event in events]


async def test_a_retry_of_a_half_kept_list_adds_only_the_missing_ones(ledger: Ledger, new_saved: Make) -> None:
    events = [new_saved("hot" if n % 3 == 0 else f"item-{n}") for n in range(1_500)]
    await ledger.append_many(events[200:700])
    await ledger.append(events[1_200])
    appended = await ledger.append_many(events)
    assert [a.event_id for a in appended] == [event.id for event in events]
    assert [n for n, a in enumerate(appended) if a.duplicate] == [*range(200, 700), 1_200]
    stored = ids(await everything(ledger))
    assert sorted(stored) == sorted(event.id for event in events)
    assert all(stored[a.position - 1] == a.event_id for a in appended)


async def test_one_event_named_twice_in_a_list_is_kept_once(ledger: Ledger, new_saved: Make) -> None:
    event, other = new_saved("item-1", expects=0), new_saved("item-2")
    appended = await ledger.append_many([event, other, event])
    assert [(a.position, a.duplicate) for a in appended] == [(1, False), (2, False), (1, True)]


async def test_a_conflict_in_a_batch_keeps_nothing_of_the_batch(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append(new_saved("taken"))
    events = [new_saved(f"item-{n}", expects=0) for n in range(50)]
    events[25] = new_saved("taken", expects=0)
    with pytest.raises(VersionConflict) as conflict:
        await ledger.append_many(events)
    assert "taken" in conflict.value.message
    assert (await ledger.head()).position == 1


async def test_a_conflict_keeps_the_batches_before_it_and_a_corrected_retry_the_rest(
    ledger: Ledger, new_saved: Make
) -> None:
    await ledger.append(new_saved("taken"))
    events = [new_saved(f"item-{n}", expects=0) for n in range(1_500)]
    events[1_100] = new_saved("taken", expects=0)
    with pytest.raises(VersionConflict):
        await ledger.append_many(events)
    assert (await ledger.head()).position == 1_001
    events[1_100] = new_saved("taken", expects=1)
    appended = await ledger.append_many(events)
    assert [a.position for a in appended] == list(range(2, 1_502))
    assert [a.duplicate for a in appended] == [True] * 1_000 + [False] * 500


async def test_what_a_change_makes_of_events_is_what_is_kept(ledger: ChangingLedger, new_saved: Make) -> None:
    async def changed(events: Sequence[NewEvent]) -> list[NewEvent]:
        return [replace(event, actor="user:changed") for event in events]

    events = [new_saved(f"item-{n}") for n in range(1_200)]
    appended = await ledger.append_changed(events, changed)
    assert [(a.position, a.event_id) for a in appended] == [(n, event.id) for n, event in enumerate(events, 1)]
    kept = await everything(ledger)
    assert ids(kept) == [event.id for event in events]
    assert {parse_subject(event.subject).actor for event in kept} == {"user:changed"}


@pytest.mark.parametrize(("fails_at", "stays"), [(900, 0), (1_100, 1_000)])
async def test_a_change_that_fails_keeps_the_batches_before_it(
    ledger: ChangingLedger, new_saved: Make, fails_at: int, stays: int
) -> None:
    events = [new_saved(f"item-{n}") for n in range(1_200)]

    async def failing(some: Sequence[NewEvent]) -> Sequence[NewEvent]:
        if events[fails_at] in some:
            raise SubjectForgotten("forgotten", subject="user:ada", receipt="r")
        return some

    with pytest.raises(SubjectForgotten):
        await ledger.append_changed(events, failing)
    assert (await ledger.head()).position == stays
    appended = await ledger.append_many(events)
    assert [a.duplicate for a in appended] == [n < stays for n in range(1_200)]


async def test_an_event_cannot_expect_a_position_that_another_of_its_batch_takes(
    ledger: Ledger, new_saved: Make
) -> None:
    for events in (
        [new_saved("item-1", expects=0), new_saved("item-1", expects=0)],
        [new_saved("item-1"), new_saved("item-1", expects=0)],
    ):
        with pytest.raises(VersionConflict):
            await ledger.append_many(events)
    assert (await ledger.head()).position == 0
    appended = await ledger.append_many([new_saved("item-1", expects=0), new_saved("item-1")])
    assert [a.position for a in appended] == [1, 2]


async def test_a_history_appended_step_by_step_can_be_retried_as_a_list(ledger: Ledger, new_saved: Make) -> None:
    first = new_saved("item-1", expects=0)
    await ledger.append(first)
    second = new_saved("item-1", expects=1)
    await ledger.append(second)
    third = new_saved("item-1", expects=2)
    appended = await ledger.append_many([first, second, third])
    assert [(a.position, a.duplicate) for a in appended] == [(1, True), (2, True), (3, False)]


async def test_an_id_used_for_another_entity_is_a_duplicate_there_too(ledger: Ledger, new_saved: Make) -> None:
    event = new_saved("item-1")
    await ledger.append(event)
    clash = new_saved("item-2", id=event.id)
    assert (await ledger.append(clash)).duplicate
    appended = await ledger.append_many([new_saved("item-3"), clash, new_saved("item-4")])
    assert [(a.position, a.duplicate) for a in appended] == [(2, False), (1, True), (3, False)]


async def test_an_oversized_event_is_refused_and_keeps_nothing(ledger: Ledger, new_saved: Make) -> None:
    too_large = new_saved("item-2", content="x" * (1024 * 1024))
    for size in (1024 * 1024 - 8 * 1024, 1024 * 1024):
        with pytest.raises(PayloadTooLarge, match="bytes"):
            await ledger.append(new_saved("item-1", content="x" * size, expects=0))
    with pytest.raises(PayloadTooLarge):
        await ledger.append_many([new_saved("item-1"), too_large])
    assert (await ledger.head()).position == 0
    assert (await ledger.append(new_saved("item-1"))).position == 1


async def test_long_ids_in_the_headers_count_towards_the_limit(ledger: Ledger, new_saved: Make) -> None:
    with pytest.raises(PayloadTooLarge, match="headers"):
        await ledger.append(new_saved("x", id="长" * 2_000, content="x" * 1_030_000))


async def test_an_event_just_below_the_limit_is_kept(ledger: Ledger, new_saved: Make) -> None:
    events = [new_saved(f"{'知' * 150}{n}", content="x" * 1_038_500, expects=0) for n in range(40)]
    await ledger.append(events[0])
    await ledger.append_many(events[1:])  # more bytes than one batch or one request holds
    read = await everything(ledger)
    assert ids(read) == [event.id for event in events]


async def test_an_id_that_makes_too_long_a_subject_is_refused(ledger: Ledger, new_saved: Make) -> None:
    with pytest.raises(IllegalSubject):
        await ledger.append(new_saved("知" * 400))
    with pytest.raises(IllegalSubject):
        await ledger.append_many([new_saved("ok"), new_saved("知" * 400)])
    assert (await ledger.head()).position == 0


@pytest.mark.parametrize(
    "entity_id",
    ["a.b.c", "*", ">", "a b", " lead", "trail ", "知识/一", "🙂", "=41", "\x00", "a\r\nb", "", "\u00e9", "e\u0301"],
)
async def test_any_id_is_legal_and_its_history_is_its_own(ledger: Ledger, new_saved: Make, entity_id: str) -> None:
    await ledger.append(new_saved("another"))
    first = await ledger.append(new_saved(entity_id, id=f"id of {entity_id}!", expects=0))
    second = await ledger.append(new_saved(entity_id, expects=first.position))
    assert (first.position, second.position) == (2, 3)
    assert await ledger.last_position_of("default", "knowledge", entity_id) == 3
    again = await ledger.append(new_saved(entity_id, id=f"id of {entity_id}!", expects=0))
    assert again == first._replace(duplicate=True)
    assert [parse_subject(e.subject).entity_id for e in await everything(ledger, 2)] == [entity_id] * 2


async def test_reading_may_start_anywhere_and_lists_are_no_longer_than_asked(ledger: Ledger, new_saved: Make) -> None:
    events = [new_saved(f"item-{n}") for n in range(2_300)]
    await ledger.append_many(events)
    for start, batch in ((1, 1), (1, 7), (2_300, 1_000), (1_150, 100), (1, 10_000), (0, 1_000), (-5, 1_000)):
        lists = [[e.position for e in got] async for got in ledger.read(start, batch=batch)][:400]
        flat = [position for positions in lists for position in positions]
        assert all(0 < len(positions) <= batch for positions in lists)
        assert flat == list(range(max(1, start), 2_301))[: len(flat)]
        assert len(flat) == min(2_301 - max(1, start), 400 * batch)
    assert await everything(ledger, 2_301) == []


@pytest.mark.parametrize("follow", [True, False])
async def test_a_ledger_that_ends_before_what_was_read_already_is_a_gap(
    ledger: Ledger, new_saved: Make, follow: bool
) -> None:
    await ledger.append_many([new_saved("item-1"), new_saved("item-2")])
    with pytest.raises(LogGap) as gap:
        await anext(ledger.read(8, follow=follow))
    assert (gap.value.details["first"], gap.value.details["last"]) == (3, 7)


async def test_lists_are_full_while_catching_up(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append_many([new_saved(f"item-{n}") for n in range(2_500)])
    assert [len(events) async for events in ledger.read(batch=1_000)] == [1_000, 1_000, 500]
    assert [len(events) async for events in ledger.read(batch=2_000)] == [2_000, 500]


async def test_reading_without_follow_ends_at_the_head_as_it_was(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    seen = []
    async for events in ledger.read(batch=5):
        seen += [event.position for event in events]
        await ledger.append(new_saved("later"))
    assert seen == list(range(1, 11))


@pytest.mark.parametrize("start", [1, 4, 6])
async def test_following_goes_on_with_what_is_appended_later(ledger: Ledger, new_saved: Make, start: int) -> None:
    await ledger.append_many([new_saved(f"item-{n}") for n in range(5)])
    seen: list[int] = []
    arrived = asyncio.Condition()

    async def follow() -> None:
        async for events in ledger.read(start, follow=True):
            async with arrived:
                seen.extend(event.position for event in events)
                arrived.notify_all()

    reader = asyncio.create_task(follow())
    for number in range(6, 26):
        await ledger.append(new_saved(f"item-{number}"))
        async with asyncio.timeout(PATIENCE), arrived:
            await arrived.wait_for(partial(seen.__contains__, number))
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    assert seen == list(range(start, 26))


async def test_a_following_reader_meets_every_event_of_busy_writers_once(ledger: Ledger, new_saved: Make) -> None:
    total = 3_000
    seen: list[int] = []

    async def follow() -> None:
        async with contextlib.aclosing(ledger.read(follow=True, batch=64)) as lists:
            async for events in lists:
                seen.extend(event.position for event in events)
                if len(seen) >= total:
                    return

    async def write(writer: int) -> None:
        for lot in range(10):
            await ledger.append_many([new_saved(f"{writer}-{lot}-{n}") for n in range(100)])

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(follow())
        for writer in range(3):
            group.create_task(write(writer))
    assert seen == list(range(1, total + 1))


async def test_two_readers_do_not_disturb_each_other(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append_many([new_saved(f"item-{n}") for n in range(1_200)])
    one, two = await asyncio.gather(everything(ledger, 1, 100), everything(ledger, 600, 1_000))
    assert [e.position for e in one] == list(range(1, 1_201))
    assert [e.position for e in two] == list(range(600, 1_201))


async def test_the_head_names_the_last_event_and_its_time(ledger: Ledger, new_saved: Make) -> None:
    await ledger.append_many([new_saved(f"item-{n}") for n in range(3)])
    stored = await everything(ledger)
    head = await ledger.head()
    assert head == (stored[-1].position, stored[-1].stored_ns)
    assert [e.stored_ns for e in stored] == sorted(e.stored_ns for e in stored)


async def test_a_list_of_no_events_cannot_be_asked_for(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="at least one"):
        await anext(ledger.read(batch=0))


steps = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["one", "lot", "retry", "stale"]), st.integers(1, 4)),
    max_size=12,
)


@given(history=steps)
@settings(
    max_examples=tries(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the ledger goes on from example to example: positions are compared from where each began
async def test_any_sequence_of_appends_reads_back_in_order_once(
    ledger: Ledger, history: list[tuple[str, str, int]]
) -> None:
    start = (await ledger.head()).position
    kept: list[NewEvent] = []
    last: dict[str, int] = {}
    for entity, step, count in history:
        entity_id = f"{start}-{entity}"
        fact = KnowledgeSaved(types=["tool"], task="t", content=step, scopes=["public"], owner="user:ada")

        def new(expects: int | None = None, entity_id: str = entity_id, fact: KnowledgeSaved = fact) -> NewEvent:
            return NewEvent(fact, entity_id, "user:ada", expects=expects)

        if step == "one":
            event = new(expects=last.get(entity, 0))
            last[entity] = (await ledger.append(event)).position
            kept.append(event)
        elif step == "lot":
            events = [new() for _ in range(count)]
            last[entity] = (await ledger.append_many(events))[-1].position
            kept += events
        elif step == "retry" and kept:
            again = await ledger.append_many(kept[-count:])
            first = start + len(kept) - len(kept[-count:]) + 1
            assert [a.position for a in again] == list(range(first, start + len(kept) + 1))
            assert all(a.duplicate for a in again)
        elif step == "stale":
            with pytest.raises(VersionConflict):
                await ledger.append(new(expects=last.get(entity, 0) + count))
    stored = await everything(ledger, start + 1, batch=3)
    assert ids(stored) == [event.id for event in kept]
    assert [e.position for e in stored] == list(range(start + 1, start + len(kept) + 1))


async def test_memory_forgets_nothing_but_ends_with_close(memory_ledger: MemoryLedger, new_saved: Make) -> None:
    await memory_ledger.append(new_saved("item-1"))
    waiting = asyncio.ensure_future(anext(memory_ledger.read(2, follow=True)))
    await asyncio.sleep(0)
    await memory_ledger.close()
    with pytest.raises(Exception, match="closed"):
        await waiting
