"""What comes in bulk is folded together: once somebody waits for it, soon in any case, and never twice or too late."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest

from kledger.contract.errors import LogGap
from ledger.event import NewEvent, StoredEvent
from ledger.events.recall import RecallServed
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import MemoryVault
from ledger.store.in_memory import MemoryLedger
from producers.operations.sealing import SealingLedger
from projections.engine.duckdb import open_view
from projections.engine.predecode import decode_ahead
from projections.engine.view import Instance, View
from projections.live import decoded_ahead, gathering, projector
from projections.live.persons import PersonsOfItems
from projections.live.projector import Projector
from tests.patience import PATIENCE, comes_true
from tests.projections.histories import rows, saved, stored

LOG = stored([saved(f"k{number}") for number in range(400)])


def recalls(count: int) -> list[NewEvent]:
    fact = RecallServed(kind="search", query="q", visible_scopes=["public"], items=[], view_position=0)
    return [NewEvent(fact, f"r{number}", "user:ann") for number in range(count)]


RECALLS = stored(recalls(20))
LATER = stored([saved("later"), *recalls(10)], 21)


class Told(MemoryLedger):
    """A ledger whose reader gets what it is told, when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: asyncio.Queue[list[StoredEvent] | Exception] = asyncio.Queue()

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        assert (start, follow, batch > 0) == (1, True, True)
        while True:
            told = await self.lists.get()
            if isinstance(told, Exception):
                raise told
            yield told

    def tell(self, *lists: Sequence[StoredEvent] | Exception) -> None:
        for told in lists:
            self.lists.put_nowait(told if isinstance(told, Exception) else list(told))


class Folding:
    """A projector at work on what it is told, and how many events it folded each time."""

    def __init__(self) -> None:
        self.ledger = Told()
        self.view = View(Instance(open_view(None)))
        self.projector = Projector(self.ledger, self.view)
        self.folds: list[int] = []
        self.running = asyncio.create_task(self.projector.run())
        self.projector.folded = lambda events, _seconds: self.folds.append(len(events))

    def kept(self) -> list[int]:
        """The positions in the view."""
        return [at for (at,) in rows(self.view.instance.con, "SELECT position FROM events ORDER BY position")]


@asynccontextmanager
async def at_work() -> AsyncIterator[Folding]:
    folding = Folding()
    try:
        async with asyncio.timeout(60):
            yield folding
    finally:
        folding.running.cancel()
        with suppress(asyncio.CancelledError):
            await folding.running
        folding.projector.close()
        folding.view.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is folded because time is over."""
    monkeypatch.setattr(gathering, "GATHER_SECONDS", 3_600.0)
    monkeypatch.setattr(gathering, "LONGEST_SECONDS", 3_600.0)
    monkeypatch.setattr(gathering, "RECALLS_SECONDS", 3_600.0)
    monkeypatch.setattr(gathering, "ON_ITS_WAY_SECONDS", 3_600.0)


@pytest.mark.usefixtures("patient")
async def test_pieces_are_folded_as_one_once_all_that_somebody_waits_for_is_there() -> None:
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100], LOG[100:200])
        waiting = asyncio.create_task(folding.view.wait_for(300, 60))
        folding.ledger.tell(LOG[200:310])
        await waiting
        assert folding.folds == [310]
        assert folding.kept() == list(range(1, 311))


@pytest.mark.usefixtures("patient")
async def test_bulk_that_grows_is_not_looked_at_for_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[float]()
    come = gathering.Arriving.come

    async def counted(arriving: gathering.Arriving, within: float, *given: Any, **more: Any) -> bool:
        looks.append(within)
        return await come(arriving, within, *given, **more)

    monkeypatch.setattr(gathering.Arriving, "come", counted)
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100], *([event] for event in LOG[100:200]))
        await folding.view.ahead.until(200, 60)
        assert len(looks) <= 2
        await folding.view.wait_for(200, 60)
        assert folding.folds == [200]


@pytest.mark.usefixtures("patient")
async def test_what_is_here_is_folded_at_once_for_somebody_who_waits_for_that() -> None:
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100])
        await folding.view.wait_for(40, 60)
        assert folding.folds == [100]


@pytest.mark.usefixtures("patient")
async def test_recalls_wait_until_something_else_comes_or_somebody_waits_for_one_of_them() -> None:
    async with at_work() as folding:
        folding.ledger.tell(*([event] for event in RECALLS[:20]))
        folding.ledger.tell(LATER[:1])
        await folding.view.until(lambda: folding.view.position == 21)
        assert folding.folds == [21]  # one event behind them takes them with it
        folding.ledger.tell(LATER[1:4], LATER[4:5])
        await folding.view.wait_for(23, 60)
        assert folding.folds[1:] in ([3], [4])
        assert folding.view.position in (24, 25)


@pytest.mark.parametrize("reason", ["RECALLS_SECONDS", "MOST_RECALLS"])
@pytest.mark.usefixtures("patient")
async def test_recalls_are_folded_soon_though_nobody_waits_and_at_once_where_there_are_many(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(gathering, reason, 0.05 if reason == "RECALLS_SECONDS" else 20)
    async with at_work() as folding:
        folding.ledger.tell(*([event] for event in RECALLS[:20]))
        await folding.view.until(lambda: folding.view.position == 20)
        assert folding.kept() == list(range(1, 21))


@pytest.mark.parametrize("reason", ["GATHER_SECONDS", "LONGEST_SECONDS", "ON_ITS_WAY_SECONDS"])
@pytest.mark.usefixtures("patient")
async def test_bulk_is_folded_soon_though_nobody_waits_or_for_what_does_not_come(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    monkeypatch.setattr(gathering, reason, 0.05)
    waits = reason == "ON_ITS_WAY_SECONDS"
    async with at_work() as folding:
        waiting = asyncio.create_task(folding.view.wait_for(10_000, 50)) if waits else None
        folding.ledger.tell(LOG[:100])
        await folding.view.until(lambda: folding.view.position == 100)
        if waiting is not None:
            waiting.cancel()
            await asyncio.wait([waiting])


@pytest.mark.parametrize(
    ("most", "most_bytes"), [(120, 1 << 30), (10_000, sum(len(event.body) for event in LOG[:120]))]
)
async def test_a_reading_goes_on_while_others_fold_and_stops_at_so_many_events_or_bytes(
    monkeypatch: pytest.MonkeyPatch, most: int, most_bytes: int
) -> None:
    monkeypatch.setattr(gathering, "MOST_BYTES", most_bytes)
    given, enough = list[int](), asyncio.Event()

    async def reading() -> AsyncGenerator[list[StoredEvent], None]:
        for start in range(0, 400, 10):
            given.append(start)
            if start == 110:  # the twelfth list: with it there is enough
                enough.set()
            yield LOG[start : start + 10]

    async with aclosing(gathering.Arriving(reading(), most)) as arriving:
        await enough.wait()
        for _ in range(20):  # it goes on without waiting for anything, if it does
            await asyncio.sleep(0)
        assert len(given) == 12
        assert [event.position for event in await arriving.next()] == list(range(1, 121))
        assert await arriving.come(10)
        assert (await arriving.next())[0].position == 121


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(("most", "most_bytes"), [(50, 1 << 30), (10_000, 1_000)])
async def test_a_batch_grows_no_further_than_so_many_events_or_bytes(
    monkeypatch: pytest.MonkeyPatch, most: int, most_bytes: int
) -> None:
    monkeypatch.setattr(projector, "BATCH", most)
    monkeypatch.setattr(gathering, "MOST_BYTES", most_bytes)
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100])
        await folding.view.until(lambda: folding.view.position == 100)


@pytest.mark.usefixtures("patient")
async def test_a_few_events_are_folded_as_they_come() -> None:
    async with at_work() as folding:
        folding.ledger.tell(LOG[: gathering.A_FEW])
        await folding.view.until(lambda: folding.view.position == gathering.A_FEW)


@pytest.mark.usefixtures("patient")
async def test_what_comes_before_a_gap_is_folded_before_folding_stops() -> None:
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100], LogGap("position 101 is missing", first=101, last=101))
        await comes_true(lambda: isinstance(folding.projector.trouble, LogGap))
        assert folding.view.position == 100


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("size", [50, 1_000])
async def test_what_is_delivered_again_while_it_gathers_counts_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(gathering, "DECODED_AT_ONCE", size)
    async with at_work() as folding:
        folding.ledger.tell(LOG[:100], LOG[:100], LOG[90:200], LOG[50:60])
        waiting = asyncio.create_task(folding.view.wait_for(250, 60))
        folding.ledger.tell(LOG[180:300])
        await waiting
        assert folding.kept() == list(range(1, 301))
        assert rows(folding.view.instance.con, "SELECT count(*) FROM refused_events") == [(0,)]


@pytest.mark.usefixtures("patient")
async def test_what_was_decoded_before_somebody_was_forgotten_is_decoded_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "DECODED_AT_ONCE", 20)
    vault, log, decoded = MemoryVault(), MemoryLedger(), threading.Event()

    def decode(*given: Any) -> Any:
        done = decode_ahead(*given)
        decoded.set()
        return done

    monkeypatch.setattr(projector, "decode_ahead", decode)
    async with at_work() as folding:
        keyring = folding.view.instance.bench.keyring = Keyring(vault.held)
        sealing = SealingLedger(log, vault, PersonsOfItems(folding.view).of)
        await sealing.append_many([saved(f"k{number}", "user:ada", content="her words") for number in range(30)])
        folding.ledger.tell(*[events async for events in log.read()])
        assert await asyncio.to_thread(decoded.wait, PATIENCE)
        async with folding.projector.paused():
            await vault.destroy("user:ada", by="user:ada", at="2026-03-05T00:00:00Z", receipt="r")
            keyring.forget("user:ada")
        folding.ledger.tell(stored([saved("k30")], first=31))
        await folding.view.wait_for(31, 60)
        assert folding.folds == [31]
        said = rows(folding.view.instance.con, "SELECT DISTINCT content FROM knowledge ORDER BY ALL")
        assert said == [("[erased]",), ("a content",)]


async def test_what_a_rebuild_folds_together_is_bounded_whatever_part_of_the_events_is_large() -> None:
    for large in ({"body": b"x" * 40_000}, {"message_id": "x" * 40_000}):
        lists: decoded_ahead.Lists = asyncio.Queue()
        for each in stored([saved(f"k{number}") for number in range(40)]):
            lists.put_nowait([each._replace(**large)] * 100)
        lists.put_nowait(None)
        together = await decoded_ahead._gathered(lists, 1_000_000)
        assert 0 < sum(len(event.body) + len(event.message_id) for event in together) < 80 * 1024 * 1024
