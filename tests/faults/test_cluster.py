"""Three servers, two nodes: one, another, all three are killed while events are appended; and who writes vectors."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable
from ledger.broker import lease
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.lease import Lease, ensure_leases
from ledger.broker.stream_setup import ensure_stream, stream_config
from ledger.event import JsonObject
from ledger.store.in_memory import MemoryLedger
from ledger.wire.publication import error_code
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.live.projector import Projector
from projections.vectors.feed import VectorFeed
from projections.vectors.wire import Settings
from tests.faults.cluster import two_of_three_members
from tests.faults.harness.survival import survive
from tests.patience import PATIENCE, comes_true
from tests.projections.histories import saved

SECONDS = 60.0
"""Of a lease, by a clock that the test moves: a machine that is busy would be late for a short one."""


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


async def until_told(admin: BrokerConnection, config: JsonObject) -> int:
    """What the cluster says of this new stream, once it has a leader that says anything."""
    async with asyncio.timeout(PATIENCE):
        while True:
            with contextlib.suppress(BrokerUnavailable):
                return error_code(await admin.api(f"STREAM.CREATE.{config['name']}", config, timeout=1))


def test_a_cluster_loses_and_doubles_nothing_though_every_server_is_killed(tmp_path: Path) -> None:
    told = survive(1_000, tmp_path)
    assert told.ok, told
    assert told.acknowledged == 1_000
    assert told.kills == 5


async def test_one_of_two_nodes_holds_the_lease_and_the_other_takes_it_when_it_is_gone(
    access: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ensure_leases(access)
    clock = Clock()
    monkeypatch.setattr(lease, "time", clock)
    connections = [await BrokerConnection.open(access, "node", name=f"test-{n}") for n in (1, 2)]
    first, second = (Lease(c, "k", f"node-{n}", seconds=SECONDS) for n, c in enumerate(connections))
    for _ in range(3 * lease.RENEWALS):
        await first._try()
        await second._try()
        assert first.held, "a holder that lives keeps it"
        assert not second.held
        clock.now += SECONDS / lease.RENEWALS
    assert second.holder == "node-0"
    while not second.held:  # the first is as if killed: it lets nothing go
        clock.now += SECONDS / 50
        await second._try()
        assert not (first.held and second.held)
    assert clock.now < 6 * SECONDS
    await second.release()
    assert not second.held
    third = Lease(connections[0], "k", "node-2", seconds=SECONDS)
    keeping = asyncio.create_task(third.keep())
    await comes_true(lambda: third.held)  # what was let go is taken without waiting for it to end
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    for connection in connections:
        await connection.close()


async def test_two_nodes_of_one_name_do_not_take_each_others_lease_for_their_own(access: BrokerAccess) -> None:
    """In containers a node is process 1, and the machine's name may be that of all of them."""
    await ensure_leases(access)
    connections = [await BrokerConnection.open(access, "node", name=f"test-{n}") for n in (1, 2)]
    first, second = (Lease(connection, "k", "node:1") for connection in connections)
    for _ in range(3):
        await first._try()
        await second._try()
        assert (first.held, second.held) == (True, False)
    await first.release()
    await second._try()
    assert second.held
    for connection in connections:
        await connection.close()


async def test_vectors_are_written_by_whoever_may_and_go_on_where_the_other_ended(tmp_path: Path) -> None:
    ledger, view = MemoryLedger(), View(Instance(open_view(None)))
    projector = Projector(ledger, view)
    may, asked = {"write": False}, asyncio.Event()

    def may_write() -> bool:
        asked.set()
        return may["write"]

    feed = VectorFeed(view, Settings(str(tmp_path)), "default", may_write=may_write)
    await feed.start()
    tasks = [asyncio.create_task(projector.run()), asyncio.create_task(feed.run())]
    last = (await ledger.append_many([saved(f"k{n}") for n in range(5)]))[-1].position
    await view.wait_for(last)
    for _ in range(3):  # it would have written the first time
        asked.clear()
        await asked.wait()
    assert (feed.applied, (await feed.status())["count"]) == (0, 0)
    may["write"] = True
    await feed.wait_for(last, PATIENCE)
    assert (await feed.status())["count"] == 5
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await feed.close()
    projector.close()
    view.close()


async def test_a_node_waits_for_the_servers_of_a_new_cluster_to_meet(tmp_path: Path) -> None:
    with two_of_three_members(tmp_path) as cluster:
        admin = await BrokerConnection.open(cluster.access, "admin", name="test-look", timeout=PATIENCE)
        wanted = {**stream_config("OTHER", 3), "subjects": ["other.>"]}
        code = await until_told(admin, wanted)
        setting_up = asyncio.create_task(ensure_stream(cluster.access, replicas=3))
        await asyncio.wait([setting_up], timeout=1)
        assert code == 10005, "two servers are too few"
        assert not setting_up.done()
        cluster.members["n3"].start()
        await setting_up
        assert (await cluster.stream())["config"]["num_replicas"] == 3
        await admin.close()


async def test_a_node_that_asks_for_more_copies_waits_for_the_servers_to_meet(tmp_path: Path) -> None:
    with two_of_three_members(tmp_path) as cluster:
        await ensure_stream(cluster.access)
        growing = asyncio.create_task(ensure_stream(cluster.access, replicas=3))
        await asyncio.wait([growing], timeout=1)
        assert not growing.done(), growing
        cluster.members["n3"].start()
        await growing
        assert (await cluster.stream())["config"]["num_replicas"] == 3


async def test_a_log_that_was_begun_with_one_copy_is_not_taken_for_one_with_three(access: BrokerAccess) -> None:
    with pytest.raises(BrokerMisconfigured, match=r"replicas > 1|insufficient|no suitable peers"):
        await ensure_stream(access, replicas=3)
