"""What the ledger on JetStream does when its broker is killed, cut, slow to start, or not what it should be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Sized
from functools import partial
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LedgerError, LogGap
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection, _outage
from ledger.broker.nats_parser import Raw
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import created, ensure_stream, stream_config
from ledger.event import NewEvent
from ledger.store.jetstream import JetStreamLedger
from ledger.store.pull_consumer import Delivery
from ledger.wire.publication import error_code
from tests.free_ports import free_address
from tests.patience import PATIENCE, comes_true

Make = Callable[..., NewEvent]


@pytest.fixture
async def own_server(broker_directory: Path) -> AsyncIterator[EmbeddedServer]:
    """A broker of the test's own, to be killed."""
    server = EmbeddedServer(broker_directory)
    await ensure_stream(await server.start())
    yield server
    await server.stop()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not come is looked for soon: a reader waits a second for it else, several times in one test."""
    monkeypatch.setattr("ledger.store.pull_consumer._MORE_COMES_WITHIN_S", 0.1)


async def positions(ledger: JetStreamLedger, start: int = 1) -> list[int]:
    return [event.position async for events in ledger.read(start) for event in events]


def holds(kept: Sized, count: int) -> bool:
    return len(kept) >= count


def restarted(server: EmbeddedServer, times: int) -> bool:
    return server.restarts == times


async def test_acknowledged_events_survive_kill_9_and_a_following_reader_goes_on_without_gap_or_double(
    own_server: EmbeddedServer, new_saved: Make
) -> None:
    ledger = await JetStreamLedger.connect(own_server.access)
    acknowledged: dict[str, int] = {}
    seen: list[tuple[int, str]] = []
    stopping = asyncio.Event()

    async def follow() -> None:
        async for events in ledger.read(follow=True, batch=50):
            seen.extend((event.position, orjson.loads(event.body)["id"]) for event in events)

    async def write(writer: int) -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            if number % 5:
                appended = [await ledger.append(new_saved(f"{writer}-{number}", expects=0))]
            else:
                lot = [new_saved(f"{writer}-{number}-{n}", expects=0) for n in range(40)]
                appended = await ledger.append_many(lot)
            acknowledged.update((a.event_id, a.position) for a in appended)

    reader = asyncio.create_task(follow())
    writers = [asyncio.create_task(write(n)) for n in range(4)]
    for kills in range(1, 4):
        goal = len(acknowledged) + 150
        await comes_true(partial(holds, acknowledged, goal))
        pid = own_server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await comes_true(partial(restarted, own_server, kills))
    goal = len(acknowledged) + 150
    await comes_true(partial(holds, acknowledged, goal))
    stopping.set()
    await asyncio.gather(*writers)
    head = await ledger.head()
    await comes_true(lambda: bool(seen) and seen[-1][0] >= head.position)
    reader.cancel()
    await asyncio.wait([reader])
    assert [position for position, _ in seen] == list(range(1, head.position + 1))
    kept = {event_id: position for position, event_id in seen}
    assert len(kept) == head.position, "an event was kept twice"
    assert kept == acknowledged
    await ledger.close()


async def test_a_retry_after_a_restart_of_the_broker_still_keeps_once(
    own_server: EmbeddedServer, new_saved: Make
) -> None:
    ledger = await JetStreamLedger.connect(own_server.access)
    events = [new_saved(f"item-{n}") for n in range(200)]
    first = await ledger.append_many(events)
    pid = own_server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    again = await ledger.append_many(events)
    assert [a.position for a in again] == [a.position for a in first]
    assert (await ledger.append(events[7])).duplicate
    assert (await ledger.head()).position == 200
    await ledger.close()


async def test_an_append_without_a_broker_ends_in_time_and_says_so(broker_directory: Path, new_saved: Make) -> None:
    server = EmbeddedServer(broker_directory)
    await ensure_stream(await server.start())
    ledger = await JetStreamLedger.connect(server.access, append_timeout=0.5)
    await server.stop()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(BrokerUnavailable):
            await ledger.append(new_saved("item-1"))
        with pytest.raises(BrokerUnavailable):
            await ledger.append_many([new_saved("item-1"), new_saved("item-2")])
    await ledger.close()
    with pytest.raises(BrokerUnavailable, match="closed"):
        await ledger.append(new_saved("item-1"))


async def test_an_append_that_began_while_the_broker_was_away_is_kept_when_it_is_back(
    broker_directory: Path, new_saved: Make
) -> None:
    server = EmbeddedServer(broker_directory)
    await ensure_stream(await server.start())
    ledger = await JetStreamLedger.connect(server.access)
    await server.stop()
    waiting = asyncio.create_task(ledger.append(new_saved("item-1")))
    following = asyncio.ensure_future(anext(ledger.read(follow=True)))
    await asyncio.sleep(0)
    again = EmbeddedServer(broker_directory)
    await again.start()
    assert again.url == server.url, "the port is kept between starts"
    assert (await waiting).position == 1
    assert [event.position for event in await following] == [1]
    await ledger.close()
    await again.stop()


def _until_stopped(pid: int) -> None:
    """Return once each of its threads stands still; where there is no /proc, at once."""
    until = time.monotonic() + 10
    while any(
        (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T"
        for thread in Path(f"/proc/{pid}/task").glob("*")
    ):
        assert time.monotonic() < until


async def test_a_stopped_broker_hangs_no_append(own_server: EmbeddedServer, new_saved: Make) -> None:
    writing, reading = [await BrokerConnection.open(own_server.access, "node") for _ in range(2)]
    ledger, hasty = JetStreamLedger(writing, reading), JetStreamLedger(writing, reading, append_timeout=0.5)
    pid = own_server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # it holds the connection and answers nothing
    try:
        _until_stopped(pid)
        event = new_saved("item-1", expects=0)
        with pytest.raises(BrokerUnavailable, match="did not answer"):
            await hasty.append(event)
        large = [new_saved(f"large-{n}", content="x" * 900_000) for n in range(20)]  # more than the sockets take
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(BrokerUnavailable):
                await hasty.append_many(large)
    finally:
        os.kill(pid, signal.SIGCONT)
    appended = await ledger.append(event)
    stored = await ledger.append_many(large)
    assert (await ledger.head()).position == 1 + len(stored)
    assert sorted([appended.position, *(one.position for one in stored)]) == list(range(1, len(stored) + 2))
    await ledger.close()


@pytest.mark.usefixtures("soon")
async def test_a_stream_cut_at_its_beginning_is_a_gap_that_says_so(
    access: BrokerAccess, admin: BrokerConnection, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(20)])
    cut = await admin.api("STREAM.UPDATE.LEDGER", {**stream_config(), "max_msgs": 5})
    assert not error_code(cut)
    with pytest.raises(LogGap, match="no longer has what is before position 16") as gap:
        await positions(jetstream_ledger)
    assert (gap.value.details["first"], gap.value.details["last"]) == (1, 15)
    assert "kledger repair" in gap.value.message
    assert await positions(jetstream_ledger, 16) == [16, 17, 18, 19, 20]
    with pytest.raises(BrokerMisconfigured, match="max_msgs is 5 and must be -1"):
        await JetStreamLedger.connect(access)
    with pytest.raises(BrokerMisconfigured, match="max_msgs"):
        await ensure_stream(access)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("removed", "read"), [((3, 4), 2), ((9, 10), 8), ((1,), 0), ((10,), 9)])
async def test_messages_missing_inside_or_at_the_end_are_a_gap_and_what_is_before_is_read(
    embedded_server: EmbeddedServer,
    admin: BrokerConnection,
    new_saved: Make,
    removed: tuple[int, ...],
    read: int,
) -> None:
    await admin.api("STREAM.DELETE.LEDGER")
    weak = {**stream_config(), "deny_delete": False}
    assert not error_code(await created(admin, weak))
    writing = await BrokerConnection.open(embedded_server.access, "node")
    reading = await BrokerConnection.open(embedded_server.access, "node")
    ledger = JetStreamLedger(writing, reading)
    await ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    for position in removed:
        assert not error_code(await admin.api("STREAM.MSG.DELETE.LEDGER", {"seq": position}))
    seen: list[int] = []

    async def read_all() -> None:
        async for events in ledger.read():
            seen.extend(event.position for event in events)

    with pytest.raises(LogGap) as gap:
        await read_all()
    assert (gap.value.details["first"], gap.value.details["last"]) == (removed[0], removed[-1])
    assert "kledger repair" in gap.value.message
    assert seen == list(range(1, read + 1))
    await ledger.close()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("batch", [3, 1_000])
@pytest.mark.parametrize(
    ("removed", "lost_on_the_way", "gap"),
    [((6,), (4, 5), (6, 6)), ((), (4,), None), ((), (9, 10), None), ((10,), (9,), (10, 10)), ((4, 8), (3, 5), (4, 4))],
)
async def test_a_gap_is_what_the_stream_lacks_and_nothing_that_was_lost_on_the_way(
    admin: BrokerConnection,
    access: BrokerAccess,
    new_saved: Make,
    monkeypatch: pytest.MonkeyPatch,
    removed: tuple[int, ...],
    lost_on_the_way: tuple[int, ...],
    gap: tuple[int, int] | None,
    batch: int,
) -> None:
    await admin.api("STREAM.DELETE.LEDGER")
    assert not error_code(await created(admin, {**stream_config(), "deny_delete": False}))
    writing, reading = [await BrokerConnection.open(access, "node") for _ in range(2)]
    ledger = JetStreamLedger(writing, reading)
    await ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    for position in removed:
        assert not error_code(await admin.api("STREAM.MSG.DELETE.LEDGER", {"seq": position}))
    to_lose, arrive = {*lost_on_the_way}, Delivery._on_event

    def lossy(delivery: Delivery, message: Raw) -> None:
        position = int(message.reply.split(b".")[5])
        if position in to_lose:
            to_lose.discard(position)
            return
        arrive(delivery, message)

    monkeypatch.setattr(Delivery, "_on_event", lossy)
    seen: list[int] = []
    found = None
    try:
        async for events in ledger.read(batch=batch):
            seen += [event.position for event in events]
    except LogGap as error:
        found = error.details["first"], error.details["last"]
    await ledger.close()
    assert (found, to_lose) == (gap, set())
    assert seen == list(range(1, 11 if gap is None else gap[0]))


async def test_a_reader_whose_consumer_is_deleted_makes_another(
    access: BrokerAccess, admin: BrokerConnection, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append(new_saved("item-1"))
    lists = jetstream_ledger.read(follow=True)
    assert [event.position for event in await anext(lists)] == [1]
    (name,) = (await admin.api("CONSUMER.NAMES.LEDGER"))["consumers"]
    following = asyncio.ensure_future(anext(lists))
    await asyncio.sleep(0)
    assert (await admin.api(f"CONSUMER.DELETE.LEDGER.{name}"))["success"]
    await jetstream_ledger.append(new_saved("item-2"))
    async with asyncio.timeout(PATIENCE):
        assert [event.position for event in await following] == [2]


async def test_a_reader_that_ends_leaves_no_consumer_behind(
    admin: BrokerConnection, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    assert await positions(jetstream_ledger) == list(range(1, 11))

    async def follow() -> None:
        async for _ in jetstream_ledger.read(follow=True):
            reading.set()

    reading = asyncio.Event()
    reader = asyncio.create_task(follow())
    await reading.wait()
    assert len((await admin.api("CONSUMER.NAMES.LEDGER"))["consumers"]) == 1
    reader.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reader
    async with asyncio.timeout(PATIENCE):
        while (await admin.api("CONSUMER.NAMES.LEDGER")).get("consumers"):  # noqa: ASYNC110  # as above
            await asyncio.sleep(0.01)


async def test_a_reader_that_does_not_go_on_asks_for_no_more_than_two_lists(
    admin: BrokerConnection, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(2_000)])
    lists = jetstream_ledger.read(batch=100)
    await anext(lists)
    await asyncio.sleep(0.3)  # time in which an unbounded reader would have taken everything
    (name,) = (await admin.api("CONSUMER.NAMES.LEDGER"))["consumers"]
    info = await admin.api(f"CONSUMER.INFO.LEDGER.{name}")
    assert info["delivered"]["stream_seq"] <= 300
    rest = [event.position async for events in lists for event in events]
    assert rest == list(range(101, 2_001))


async def test_a_missing_stream_is_named(access: BrokerAccess, admin: BrokerConnection) -> None:
    ledger = await JetStreamLedger.connect(access)
    await admin.api("STREAM.DELETE.LEDGER")
    with pytest.raises(BrokerMisconfigured, match="LEDGER"):
        await anext(ledger.read())
    with pytest.raises(BrokerMisconfigured, match="stream not found"):
        await JetStreamLedger.connect(access)
    await ledger.close()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("deny_delete", False),
        ("deny_purge", False),
        ("allow_atomic", False),
        ("allow_direct", False),
        ("storage", "memory"),
        ("max_age", 86_400_000_000_000),
        ("max_bytes", 1024 * 1024),
        ("retention", "interest"),
        ("max_msgs_per_subject", 1),
        ("duplicate_window", 1_000_000_000),
    ],
)
async def test_a_stream_that_could_lose_events_is_refused_by_the_name_of_the_setting(
    access: BrokerAccess, admin: BrokerConnection, setting: str, value: object
) -> None:
    await admin.api("STREAM.DELETE.LEDGER")
    answer = await created(admin, {**stream_config(), setting: value})
    assert not error_code(answer), answer
    with pytest.raises(BrokerMisconfigured, match=setting):
        await ensure_stream(access)


@pytest.mark.usefixtures("soon")
async def test_the_last_events_are_handed_over_though_the_server_counts_more_than_there_are(
    access: BrokerAccess, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    connection = await BrokerConnection.open(access, "reader")
    # As on a copy of the stream that lags behind: what it lacks when the reader begins, it counts as yet to be sent.
    delivery = Delivery(connection, LEDGER_STREAM, 4, 100)
    await delivery.begin(None)
    await asyncio.gather(*(jetstream_ledger.append(new_saved(f"item-{n}")) for n in range(7)))
    taken: list[int] = []
    async with asyncio.timeout(PATIENCE):
        while taken != [5, 6, 7]:
            taken += [event.position for event in await delivery.take()]
    await delivery.end()
    await connection.close()


async def test_open_batches_of_others_keep_no_append_from_being_kept(
    embedded_server: EmbeddedServer, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    other = await BrokerConnection.open(embedded_server.access, "writer")
    for n in range(80):  # a server as it comes takes 50
        headers = {"Nats-Batch-Id": f"open-{n}", "Nats-Batch-Sequence": "1"}
        await other.request(f"ledger.o.k.{n}.saved.user.x", b"{}", headers)
    events = [new_saved(f"item-{n}") for n in range(3)]
    assert [a.position for a in await jetstream_ledger.append_many(events)] == [1, 2, 3]
    await other.close()


async def test_a_connection_that_is_closed_while_it_is_opened_again_stays_closed(access: BrokerAccess) -> None:
    connection = await BrokerConnection.open(access, "node")
    await connection.client.close()  # as the library does after a protocol error
    opening = asyncio.create_task(connection.until_connected(5.0))
    await asyncio.sleep(0)  # it has begun
    await connection.close()
    with pytest.raises(BrokerUnavailable, match="is closed"):
        await opening
    assert connection.client.is_closed


INFO = b'INFO {"server_id":"S","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576}\r\n'


@pytest.mark.parametrize("says", [b"", INFO], ids=["before a word", "before it is let in"])
@pytest.mark.parametrize("ends", ["cancelled", "too late"])
async def test_a_connection_that_is_given_up_as_it_opens_leaves_no_socket(says: bytes, ends: str) -> None:
    closed = asyncio.Event()
    came = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        if says:
            await reader.readline()
        came.set()
        with contextlib.suppress(ConnectionError):
            while await reader.read(1024):
                pass
        writer.close()
        closed.set()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        access = BrokerAccess.from_url(f"nats://{host}:{port}")
        opening = asyncio.create_task(BrokerConnection.open(access, "node", timeout=0.3 if ends == "too late" else 60))
        async with asyncio.timeout(PATIENCE):
            await came.wait()
            if ends == "cancelled":
                opening.cancel()
            with pytest.raises(asyncio.CancelledError if ends == "cancelled" else BrokerUnavailable) as kept:
                await opening
            await closed.wait()  # while the task, and all that it has, is still there
        assert kept.value.__traceback__ is not None
    assert not _outage(access.url)._in_trouble, "a connection that never was is not a lost one"


@pytest.mark.parametrize("there", ["nobody", "another password"])
async def test_a_broker_that_was_never_reached_is_an_error_and_no_line_of_a_lost_connection(
    access: BrokerAccess, there: str
) -> None:
    url = (
        f"nats://somebody:wrong@{access.url.rpartition('//')[2]}"
        if there == "another password"
        else f"nats://{free_address()}"
    )
    with capture_logs() as lines, pytest.raises(LedgerError):
        await BrokerConnection.open(BrokerAccess.from_url(url), "admin", timeout=0.5)
    assert [line for line in lines if line["log_level"] != "debug"] == []


@pytest.mark.parametrize("log_is_there", [False, True])
async def test_copies_that_no_broker_can_keep_are_refused_with_the_option_that_asks_for_them(
    access: BrokerAccess, admin: BrokerConnection, *, log_is_there: bool
) -> None:
    if not log_is_there:
        await admin.api("STREAM.DELETE.LEDGER")
    with pytest.raises(BrokerMisconfigured, match=r"cannot keep 3 copies.*--replicas takes a cluster"):
        await ensure_stream(access, replicas=3)
