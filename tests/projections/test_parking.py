"""An event that cannot be folded: found among thousands, parked with its reason, and the same in every rebuild."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import IllegalState, LedgerError, UnfoldableEvent, UnknownReference
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import NewEvent, StoredEvent
from ledger.store.in_memory import MemoryLedger
from ledger.store.parked import NONE_PARKED, Decision, Parked, ParkedEvents, ensure_parked_stream, fingerprint_of
from projections.engine import batch, parking
from projections.engine.batch import Folded, fold_batch
from projections.engine.digest import digests
from projections.engine.duckdb import open_view
from projections.engine.parking import attention, disagreement, fold_strictly, held_apart
from projections.engine.view import Instance, View
from projections.engine.withheld import named
from projections.fold_kit.workbench import Workbench
from projections.live.catch_up import catch_up
from projections.live.projector import Projector
from projections.live.rebuild import rebuild_into
from tests.faults import poison
from tests.patience import PATIENCE
from tests.projections.histories import new_view, rows, saved, state, stored

Install = Callable[[], None]


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Makes folds fail on the marker, now and until the test ends or `undo` is called."""
    monkeypatch.setattr(parking, "PAUSE_SECONDS", 0.001)
    return lambda: monkeypatch.setattr(batch, "named", poison.poisoned(named))


@pytest.fixture
async def parked(access: BrokerAccess) -> AsyncIterator[ParkedEvents]:
    """No decisions yet, on the shared broker."""
    await ensure_parked_stream(access)
    decisions = ParkedEvents(await BrokerConnection.open(access, "node", name="test-parked"))
    yield decisions
    await decisions.close()


@asynccontextmanager
async def projecting(ledger: MemoryLedger, parked: ParkedEvents) -> AsyncIterator[tuple[View, Projector]]:
    view = View(Instance(open_view(None)))
    projector = Projector(ledger, view, parked)
    task = asyncio.create_task(projector.run())
    try:
        yield view, projector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        projector.close()
        view.close()


def history(count: int, bad: set[int]) -> list[NewEvent]:
    return [
        saved(f"item-{position}", content=poison.MARKER if position in bad else f"content {position}")
        for position in range(1, count + 1)
    ]


def decided(event: StoredEvent, reason: str = "why") -> dict[int, Decision]:
    return {event.position: Decision(event.position, fingerprint_of(event), "parked", reason, 3, "2026-01-01")}


@pytest.mark.parametrize("count", [5, 300])
@pytest.mark.parametrize("at", [1, 4, -1])
def test_the_one_event_that_cannot_be_folded_is_named_and_everything_before_it_is_folded(
    marked: Install, count: int, at: int
) -> None:
    at = at % (count + 1)
    log = stored(history(count, {at}))
    marked()
    bench = new_view()
    with pytest.raises(UnfoldableEvent, match=f"position {at} .*tried 3 times: ConversionException") as poisoned:
        fold_strictly(bench, log)
    assert bench.position() == at - 1
    assert poisoned.value.details["fingerprint"] == fingerprint_of(log[at - 1])
    assert "secret" not in poisoned.value.message, "what an error quotes of an event is not kept"
    folded = fold_strictly(bench, log, decided(log[at - 1]))
    assert (folded.position, folded.refused) == (count, 1)
    assert rows(bench.con, "SELECT position, code, reason, body <> '' FROM refused_events") == [
        (at, "unfoldable", "why", True)
    ]
    assert rows(bench.con, "SELECT count(*) FROM knowledge") == [(count - 1,)]


@pytest.mark.parametrize("cuts", [(), (3,), (1, 2, 3, 4), (150, 151)])
def test_parked_events_give_the_same_view_however_the_log_is_cut(marked: Install, cuts: tuple[int, ...]) -> None:
    log = stored(history(300, {3, 150, 151}))
    known = decided(log[2]) | decided(log[149]) | decided(log[150])
    whole, cut = new_view(), new_view()
    marked()
    fold_strictly(whole, log, known)
    for first, last in zip((0, *cuts), (*cuts, 300), strict=True):
        fold_strictly(cut, log[first:last], known)
        fold_strictly(cut, log[first:last], known)  # delivered again
    assert state(whole) == state(cut)


def test_a_decision_about_another_event_at_that_position_parks_nothing() -> None:
    log, other = stored([saved("k1")]), stored([saved("k2")])
    bench = new_view()
    assert fold_batch(bench, log, decided(other[0])) == Folded(1, 1, 0)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.IOException("IO Error: Could not write file: No space left on device"),
        duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block"),
        duckdb.FatalException("FATAL Error: database has been invalidated"),
        duckdb.ConnectionException("Connection Error: Connection already closed"),
        duckdb.TransactionException("TransactionContext Error: Current transaction is aborted"),
        duckdb.CatalogException("Catalog Error: Table with name lineage does not exist"),
        OSError(28, "No space left on device"),
        MemoryError(),
        RuntimeError("cannot schedule new futures after shutdown"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_lies_with_the_machine_is_no_event_s_fault(error: Exception) -> None:
    tried: list[int] = []

    def fold(_bench: Workbench, events: list[StoredEvent], _parked: Parked) -> Folded:
        tried.append(len(events))
        raise error

    with pytest.raises(type(error)):
        fold_strictly(new_view(), stored(history(9, set())), fold=fold)
    assert tried == [9], "it is neither cut in halves nor tried again here"


def test_an_error_that_broke_the_file_parks_nothing() -> None:
    con = open_view(None)
    bench = Workbench(con)

    def fold(_bench: Workbench, _events: list[StoredEvent], _parked: Parked) -> Folded:
        con.close()
        raise duckdb.ConversionException("Conversion Error: and then the file was gone")

    with pytest.raises(duckdb.ConnectionException):
        fold_strictly(bench, stored(history(1, set())), fold=fold)


def test_a_transaction_that_could_not_be_rolled_back_does_not_keep_the_next_fold_from_its_work() -> None:
    bench = Workbench(open_view(None))
    bench.con.execute("BEGIN TRANSACTION")
    with pytest.raises(duckdb.Error):
        bench.con.execute("SELECT error('there was no memory, not for a ROLLBACK either')").fetchall()
    assert fold_strictly(bench, stored(history(3, set()))).accepted == 3


def test_an_error_that_passes_costs_no_event() -> None:
    failures = iter([ValueError("once"), ValueError("twice")])

    def fold(bench: Workbench, events: list[StoredEvent], parked: Parked) -> Folded:
        for failure in failures:
            raise failure
        return fold_batch(bench, events, parked)

    assert fold_strictly(new_view(), stored(history(1, set())), fold=fold).accepted == 1


@pytest.mark.parametrize("foreign", [b"", b'{"stream":"LEDGER","seq":5}', b"[]", b"\xff"])
async def test_a_message_that_is_no_decision_keeps_nobody_from_deciding(
    access: BrokerAccess, parked: ParkedEvents, foreign: bytes
) -> None:
    # In an account that others share, an answer of the broker can be aimed there, and nothing is removed from there.
    connection = await BrokerConnection.open(access, "node", name="test-foreign")
    await connection.request("parked.5", foreign)
    await connection.close()
    await parked.refresh()
    assert parked.decisions == []
    decided = await parked.decide(5, "parked", fingerprint="f", reason="r", tries=3)
    assert parked.decisions == [decided]
    assert (await parked.decide(5, "dismissed")).state == "dismissed"


async def test_live_the_poison_is_parked_and_the_rest_goes_on_and_a_rebuild_agrees(
    marked: Install, parked: ParkedEvents, tmp_path: Path
) -> None:
    ledger = MemoryLedger()
    marked()
    await ledger.append_many(history(30, {7, 8, 20}))
    async with projecting(ledger, parked) as (view, projector):
        await view.wait_for(30, PATIENCE)
        last = await ledger.append(saved("after"))
        await view.wait_for(last.position, PATIENCE)
        assert projector.trouble is None
        assert parked.waiting == [7, 8, 20]
        live = await view.ask(digests)
        assert await view.ask(lambda cursor: rows(cursor, "SELECT position, code FROM refused_events ORDER BY 1")) == [
            (at, "unfoldable") for at in (7, 8, 20)
        ]
        reasons, waiting = await attention(ledger, view, parked)
        assert (reasons, waiting) == ([], ["3 parked events wait for you (at 7, 8, 20): kledger refused list"])
    replayed = View(Instance(open_view(None)))
    await catch_up(ledger, replayed, 31, parked=parked.parked)
    assert digests(replayed.instance.con) == live
    with pytest.raises(UnfoldableEvent, match="position 7 "):
        await rebuild_into(ledger, tmp_path / "strict.duckdb", parked={8: parked.parked[8]})
    assert list(tmp_path.iterdir()) == [], "a rebuild that stopped leaves no file"


async def test_a_view_folded_with_other_decisions_is_noticed(marked: Install, parked: ParkedEvents) -> None:
    ledger = MemoryLedger()
    await ledger.append_many(history(20, {7}))
    view = View(Instance(open_view(None)))
    await catch_up(ledger, view, 20)
    con = view.instance.con
    (event,) = [e async for events in ledger.read(7, batch=1) for e in events if e.position == 7]
    assert await disagreement(ledger, *held_apart(con), NONE_PARKED) == []
    assert await disagreement(ledger, *held_apart(con), decided(event)) == [7]
    assert await disagreement(ledger, *held_apart(con), {7: Decision(7, "of another", "parked", "", 3, "")}) == []
    await parked.decide(7, "parked", fingerprint=fingerprint_of(event), reason="elsewhere", tries=3)
    reasons, _ = await attention(ledger, view, parked)
    assert "before it was decided about the events at 7" in reasons[0]


async def test_the_first_of_two_nodes_decides_and_both_read_the_same(
    access: BrokerAccess, parked: ParkedEvents
) -> None:
    other = ParkedEvents(await BrokerConnection.open(access, "node", name="test-other"))
    told = await asyncio.gather(
        *(who.decide(5, "parked", fingerprint="f", reason=why, tries=3) for who, why in ((parked, "a"), (other, "b"))),
        return_exceptions=True,
    )
    await parked.refresh()
    await other.refresh()
    assert parked.decisions == other.decisions
    assert len(parked.decisions) == 1
    assert {type(one) for one in told if isinstance(one, LedgerError)} <= {
        LedgerError.__subclasses__()[0],
        *(kind for kind in LedgerError.__subclasses__() if kind.code == "broker_unavailable"),
    }
    again = await other.decide(5, "parked", fingerprint="f", reason="c", tries=3)
    assert again.reason in ("a", "b")
    await other.close()


async def test_what_is_decided_follows_its_rules(parked: ParkedEvents) -> None:
    with pytest.raises(UnknownReference, match="no event is parked at position 5"):
        await parked.decide(5, "dismissed")
    await parked.decide(5, "parked", fingerprint="f", reason="r", tries=3)
    dismissed = await parked.decide(5, "dismissed")
    assert (dismissed.reason, dismissed.tries, dismissed.fingerprint) == ("r", 3, "f")
    assert parked.waiting == []
    assert list(parked.parked) == [5]
    with pytest.raises(IllegalState, match="dismissed already"):
        await parked.decide(5, "dismissed")
    await parked.decide(5, "released")
    assert parked.parked == {}
    with pytest.raises(UnknownReference):
        await parked.decide(5, "released")


async def test_too_many_bad_events_stop_the_folding_instead_of_emptying_the_views(
    marked: Install, parked: ParkedEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MOST_WAITING", 2)
    ledger = MemoryLedger()
    marked()
    await ledger.append_many(history(10, {2, 4, 6}))
    async with projecting(ledger, parked) as (view, projector):
        async with asyncio.timeout(PATIENCE):
            while not isinstance(projector.trouble, UnfoldableEvent):  # noqa: ASYNC110  # the projector's own loop
                await asyncio.sleep(0.01)
        assert parked.waiting == [2, 4]
        assert "2 events are parked and wait" in projector.trouble.message
        assert view.instance.bench.position() == 5
        await parked.decide(2, "dismissed")
        await view.wait_for(10, PATIENCE)


async def test_a_broker_that_is_away_parks_nothing_until_it_can_be_kept(marked: Install, parked: ParkedEvents) -> None:
    ledger = MemoryLedger()
    marked()
    await ledger.append_many(history(3, {2}))
    await parked.close()
    async with projecting(ledger, parked) as (view, projector):
        async with asyncio.timeout(PATIENCE):
            while projector.trouble is None:  # noqa: ASYNC110  # as above
                await asyncio.sleep(0.01)
        assert projector.trouble.code == "broker_unavailable"
        assert view.instance.bench.position() == 1
        assert parked.parked == {}


async def test_a_writer_cannot_decide_what_is_parked(access: BrokerAccess, parked: ParkedEvents) -> None:
    writer = ParkedEvents(await BrokerConnection.open(access, "writer", name="test-writer"))
    with pytest.raises(LedgerError, match="may not do this"):
        await writer.decide(1, "parked", fingerprint="f", reason="r", tries=3)
    await writer.close()
    await parked.refresh()
    assert parked.decisions == []


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("number", ["9223372036854775808", "18446744073709551615", "99999999999999999999999"])
def test_a_number_that_no_view_can_hold_is_refused_and_needs_no_parking(
    few: bool, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ledger.events.knowledge import KnowledgeRevised
    from ledger.events.recall import RecallServed, ServedItem

    served = RecallServed(
        query="q", visible_scopes=[], items=[ServedItem(id="k1", version=77_777, relevance=1.0)], view_position=88_888
    )
    log = stored(
        [
            saved("k1"),
            NewEvent(KnowledgeRevised(content="c", expected_version=66_666), "k1", "agent:a"),
            NewEvent(served, "r1", "agent:a"),
            NewEvent(served, "r2", "agent:a"),
        ]
    )
    changed = [b"none", b"66666", b"77777", b"88888"]
    log = [e._replace(body=e.body.replace(was, number.encode())) for e, was in zip(log, changed, strict=True)]
    monkeypatch.setattr(batch, "SMALL", 64 if few else 0)
    bench = new_view()
    assert fold_strictly(bench, log).refused == 3
    assert {code for (code,) in rows(bench.con, "SELECT code FROM refused_events")} == {"invalid_payload"}
