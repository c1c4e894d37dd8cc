"""The loop: it keeps the view at the head, stops where positions are missing, and swaps without a refused read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import BrokerUnavailable, LogGap, ViewBehind
from kledger.contract.knowledge import Source
from ledger.archive.segments import Segment
from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.store.in_memory import MemoryLedger
from ledger.store.parked import Parked
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.engine.predecode import Ahead, decode_ahead
from projections.engine.view import Instance, View
from projections.fold_kit.parser import Parser
from projections.fold_kit.workbench import Workbench
from projections.live import decoded_ahead
from projections.live import projector as runner
from projections.live.catch_up import catch_up
from projections.live.projector import Projector
from tests.patience import comes_true
from tests.projections.histories import new_view, rows, saved, state, stored, view_of


class Interrupted(MemoryLedger):
    """A ledger whose readers get what `told` says before they are well served."""

    def __init__(self, told: list[list[StoredEvent] | Exception]) -> None:
        super().__init__()
        self.told = told

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        while self.told:
            next_thing = self.told.pop(0)
            if isinstance(next_thing, Exception):
                raise next_thing
            yield next_thing
        async for events in super().read(start, follow=follow, batch=batch):
            yield events


@asynccontextmanager
async def projecting(ledger: MemoryLedger) -> AsyncIterator[tuple[View, Projector, asyncio.Task[None]]]:
    view = View(Instance(open_view(None)))
    projector = Projector(ledger, view)
    task = asyncio.create_task(projector.run())
    try:
        yield view, projector, task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        projector.close()
        view.close()


def items(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    return [item for (item,) in cursor.execute("SELECT id FROM knowledge ORDER BY id").fetchall()]


async def test_what_is_appended_is_soon_in_the_view() -> None:
    ledger = MemoryLedger()
    async with projecting(ledger) as (view, _, _):
        kept = await ledger.append(saved("k1"))
        await view.wait_for(kept.position)
        assert await view.ask(items) == ["k1"]


async def test_a_reader_that_asks_for_a_position_too_early_is_told_so() -> None:
    async with projecting(MemoryLedger()) as (view, _, _):
        with pytest.raises(ViewBehind, match="position 0, 5 was asked for"):
            await view.wait_for(5, timeout=0.05)


async def test_missing_positions_stop_the_folding_and_not_the_reading() -> None:
    log = stored([saved("k1"), saved("k2"), saved("k3")])
    ledger = Interrupted([[log[0]], [log[2]]])
    async with projecting(ledger) as (view, projector, task):
        await comes_true(lambda: isinstance(projector.trouble, LogGap))
        assert not task.done(), "it waits for a view that is made anew"
        assert await view.ask(items) == ["k1"]


async def test_trouble_with_the_broker_passes() -> None:
    ledger = Interrupted([BrokerUnavailable("gone"), BrokerUnavailable("still gone")])
    kept = await ledger.append(saved("k1"))
    async with projecting(ledger) as (view, projector, _):
        await view.wait_for(kept.position)
        assert projector.trouble is None or isinstance(projector.trouble, BrokerUnavailable)
        assert await view.ask(items) == ["k1"]


def test_a_batch_with_a_gap_inside_changes_nothing() -> None:
    log = stored([saved("k1"), saved("k2"), saved("k3")])
    bench = new_view()
    with pytest.raises(LogGap, match="events are missing"):
        fold_batch(bench, [log[0], log[2]])
    assert rows(bench.con, "SELECT count(*) FROM events") == [(0,)]
    assert bench.position() == 0


def test_a_fold_that_fails_leaves_the_view_and_its_checkpoint_as_they_were() -> None:
    log = stored([saved("k1"), saved("k2", source=Source(trace_id="t1"))])
    con = open_view(None)
    bench = Workbench(con)
    fold_batch(bench, log[:1])
    con.execute("ALTER TABLE other_links RENAME TO elsewhere")
    with pytest.raises(duckdb.Error):
        fold_batch(bench, log[1:])
    con.execute("ALTER TABLE elsewhere RENAME TO other_links")
    assert rows(con, "SELECT id FROM knowledge") == [("k1",)]
    assert bench.position() == 1


async def test_catching_up_ends_where_it_is_told_to_and_says_how_far_it_is() -> None:
    ledger = MemoryLedger()
    await ledger.append_many([saved(f"k{n}") for n in range(25)])
    view = View(Instance(open_view(None)))
    told: list[int] = []
    await catch_up(ledger, view, 20, lambda position, _: told.append(position))
    assert view.position == 20
    assert told[-1] == 20
    log = [event async for events in ledger.read() for event in events]
    assert state(view.instance.bench) == state(view_of(log[:20]))
    view.close()


async def test_a_vault_that_does_not_answer_as_events_are_opened_ends_the_catching_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = MemoryLedger()
    await ledger.append_many([saved(f"k{n}") for n in range(25)])
    for limit in ("_LIST", "_BATCH", "_LAST_BATCHES"):
        monkeypatch.setattr(decoded_ahead, limit, 10)
    asked = list[int]()

    def decoded(parser: Parser, keyring: Keyring, events: list[StoredEvent], parked: Parked) -> Ahead:
        asked.append(events[0].position)
        if len(asked) > 1:
            raise BrokerUnavailable("the vault is gone")
        return decode_ahead(parser, keyring, events, parked)

    monkeypatch.setattr(decoded_ahead, "decode_ahead", decoded)
    view = View(Instance(open_view(None)))
    with pytest.raises(BrokerUnavailable, match="the vault is gone"):
        await catch_up(ledger, view, 25)
    assert asked == [1, 11]
    view.close()


async def test_one_batch_is_ready_and_none_is_decoded_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holds some 50 MB, and one that is ready keeps the folding busy."""
    ledger = MemoryLedger()
    await ledger.append_many([saved(f"k{n}") for n in range(40)])
    for limit in ("_LIST", "_BATCH", "_LAST_BATCHES"):
        monkeypatch.setattr(decoded_ahead, limit, 10)
    asked, loop, second = list[int](), asyncio.get_running_loop(), asyncio.Event()

    def decoded(parser: Parser, keyring: Keyring, events: list[StoredEvent], parked: Parked) -> Ahead:
        asked.append(events[0].position)
        batch = decode_ahead(parser, keyring, events, parked)
        if len(asked) == 2:
            loop.call_soon_threadsafe(second.set)
        return batch

    monkeypatch.setattr(decoded_ahead, "decode_ahead", decoded)
    async with decoded_ahead.decoded_ahead(ledger, Keyring(), Segment(1, 40)) as batches:
        await batches.next()
        await second.wait()
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert asked == [1, 11]
        while await batches.next() is not None:
            pass
    assert asked == [1, 11, 21, 31]


async def test_whatever_ends_the_reading_of_the_log_ends_the_catching_up(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = MemoryLedger()
    await ledger.append_many([saved(f"k{n}") for n in range(5)])
    reading = ledger.read

    async def read(start: int, *, batch: int) -> AsyncIterator[list[StoredEvent]]:
        async with contextlib.aclosing(reading(start, batch=2)) as batches:
            yield await anext(batches)
            raise ValueError("no event has such headers")

    monkeypatch.setattr(ledger, "read", read)
    view = View(Instance(open_view(None)))
    with pytest.raises(ValueError, match="no event has such headers"):
        await catch_up(ledger, view, 5)
    view.close()


async def test_a_view_is_swapped_under_its_readers_and_none_is_refused() -> None:
    view = View(Instance(open_view(None)))
    fold_batch(view.instance.bench, stored([saved("old")]))
    closed: list[str] = []
    started, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(cursor: duckdb.DuckDBPyConnection) -> list[str]:
        loop.call_soon_threadsafe(started.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
        return items(cursor)

    reading = asyncio.create_task(view.ask(slow))
    await started.wait()
    fresh = Instance(open_view(None))
    fold_batch(fresh.bench, stored([saved("new")]))
    await view.swap(fresh, then=lambda: closed.append("old"))
    assert await view.ask(items) == ["new"]
    assert closed == []
    go_on.set()
    assert await reading == ["old"]
    assert closed == ["old"]
    view.close()


async def test_a_checkpoint_that_a_question_under_way_prevents_is_put_off_and_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "CHECKPOINT_EVERY_EVENTS", 1)
    ledger = MemoryLedger()
    view = View(Instance(open_view(tmp_path / "view.duckdb")))
    projector = Projector(ledger, view)
    asked = view.instance.con.cursor()
    asked.execute("BEGIN")
    asked.execute("SELECT count(*) FROM events").fetchall()
    task = asyncio.create_task(projector.run())
    try:
        for name in ("k1", "k2"):
            kept = await ledger.append(saved(name))
            await view.wait_for(kept.position)
        assert projector.trouble is None
        assert await view.ask(items) == ["k1", "k2"]
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        asked.close()
        projector.close()
        view.close()
