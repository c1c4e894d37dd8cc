"""Does a cluster keep what it acknowledged? Leader, follower and all three are killed while events are appended."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import orjson

from kledger.contract.errors import BrokerUnavailable
from ledger.event import NewEvent
from ledger.store.jetstream import JetStreamLedger
from projections.engine.digest import RelationDigest
from tests.conftest import saved
from tests.faults.cluster import Cluster, three_members
from tests.faults.harness.checks import MASTER_KEY, live_digests
from tests.journeys.running_node import RunningNode, caught_up, running

BATCH = 20
WRITERS = 4


@dataclass(frozen=True, slots=True)
class Survival:
    """What was left: `acknowledged` events, of them `lost`, ids kept more than once, and whether both nodes agree."""

    acknowledged: int
    kept: int
    lost: int
    duplicated: int
    kills: int
    retries: int
    digests_equal: bool

    @property
    def ok(self) -> bool:
        return not self.lost and not self.duplicated and self.digests_equal and self.kept == self.acknowledged


def survive(events: int, directory: Path) -> Survival:
    """Append `events` events to a cluster of three with two nodes, killing the leader, a follower, and all three."""
    with three_members(directory / "nats") as cluster, ExitStack() as stack:
        nodes = [
            stack.enter_context(
                running(
                    directory / f"node-{n}",
                    *("--nats", cluster.url, "--replicas", "3"),
                    env={"KLEDGER_MASTER_KEY": MASTER_KEY},
                )
            )
            for n in (1, 2)
        ]
        assert asyncio.run(cluster.stream())["config"]["num_replicas"] == 3
        acknowledged, retries, kills = asyncio.run(_append_through_kills(cluster, events))
        kept = asyncio.run(_kept(cluster))
        told = [_settled(node) for node in nodes]
    ids = [event_id for event_id, _ in kept]
    lost = [event_id for event_id, position in acknowledged.items() if (event_id, position) not in set(kept)]
    return Survival(
        len(acknowledged), len(ids), len(lost), len(ids) - len(set(ids)), kills, retries, told[0] == told[1]
    )


async def _append_through_kills(cluster: Cluster, events: int) -> tuple[dict[str, int], int, int]:
    ledger = await JetStreamLedger.connect(cluster.access, role="writer", name="survival")
    acknowledged: dict[str, int] = {}
    retries = 0

    async def write(writer: int) -> None:
        nonlocal retries
        for first in range(writer * BATCH, events, WRITERS * BATCH):
            lot = [saved(f"item-{n}", content=f"content {n}") for n in range(first, min(first + BATCH, events))]
            while not await _kept_now(ledger, lot, acknowledged):
                retries += 1

    async def until(share: float) -> None:
        while len(acknowledged) < events * share:  # noqa: ASYNC110  # other tasks move it on
            await asyncio.sleep(0.005)

    writing = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
    await until(0.2)
    leader = await cluster.leader()
    leader.kill()
    await until(0.4)
    leader.start()
    leading = await cluster.leader()
    follower = next(member for member in cluster.members.values() if member is not leading)
    follower.kill()
    await until(0.6)
    follower.start()
    await cluster.stream()
    await until(0.8)
    for member in cluster.members.values():
        member.kill()
    for member in cluster.members.values():
        member.start()
    await asyncio.gather(*writing)
    await ledger.close()
    return acknowledged, retries, 5


async def _kept_now(ledger: JetStreamLedger, lot: list[NewEvent], acknowledged: dict[str, int]) -> bool:
    try:
        kept = await ledger.append_many(lot)
    except BrokerUnavailable:
        return False
    acknowledged.update((one.event_id, one.position) for one in kept)
    return True


async def _kept(cluster: Cluster) -> list[tuple[str, int]]:
    await cluster.stream()
    ledger = await JetStreamLedger.connect(cluster.access, role="reader", name="survival-read")
    try:
        return [(orjson.loads(event.body)["id"], event.position) async for events in ledger.read() for event in events]
    finally:
        await ledger.close()


def _settled(node: RunningNode) -> tuple[int, dict[str, RelationDigest]]:
    with node.client(timeout=120) as client:
        caught_up(client)
        return live_digests(client)
