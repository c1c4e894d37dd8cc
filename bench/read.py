"""Read benchmark: throughput of reading the log, beside the fastest way with the bare client.

Bare, two ways: an inbox with pull requests for 1,000 messages, and an ordered consumer; both only count.
Ours parses each message and checks every position. One stream, in turns; a row is the median.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.append import BODY_BYTES, bare_client, events_of, rate
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.store.jetstream import JetStreamLedger

EVENTS = 60_000
ROUNDS = 5
REQUEST = 1_000
LIVE = 300


async def bare_inbox(client: Client, name: str, count: int = EVENTS) -> None:
    """Read `count` events through a plain inbox, with two requests of 1,000 ahead."""
    done = asyncio.Event()
    received = 0
    inbox = client.new_inbox()
    ask = f"$JS.API.CONSUMER.MSG.NEXT.LEDGER.{name}"
    demand = json.dumps({"batch": REQUEST, "expires": 30_000_000_000}).encode()

    async def on_message(message: Msg) -> None:
        nonlocal received
        if not message.reply:
            return
        received += 1
        if received == count:
            done.set()
        elif received % REQUEST == 0:
            await client.publish(ask, demand, reply=inbox)

    subscription = await client.subscribe(inbox, cb=on_message)
    config = {"name": name, "deliver_policy": "all", "ack_policy": "none", "mem_storage": True}
    await client.request(
        f"$JS.API.CONSUMER.CREATE.LEDGER.{name}",
        json.dumps({"stream_name": "LEDGER", "config": config}).encode(),
        timeout=5,
    )
    for _ in range(2):
        await client.publish(ask, demand, reply=inbox)
    await done.wait()
    await subscription.unsubscribe()
    await client.request(f"$JS.API.CONSUMER.DELETE.LEDGER.{name}", timeout=5)


async def bare_ordered(client: Client) -> None:
    """Read the whole stream with the client's ordered consumer."""
    done = asyncio.Event()
    received = 0

    async def on_message(_: Msg) -> None:
        nonlocal received
        received += 1
        if received == EVENTS:
            done.set()

    subscription = await client.jetstream().subscribe(
        "ledger.>", stream="LEDGER", cb=on_message, ordered_consumer=True, pending_bytes_limit=0
    )
    await done.wait()
    await subscription.unsubscribe()


async def ours(ledger: JetStreamLedger) -> None:
    """Read the whole stream as the projector does."""
    received = 0
    async for events in ledger.read():
        received += len(events)
    if received != EVENTS:
        raise RuntimeError(f"{received} of {EVENTS} events were read")


async def live_latency(ledger: JetStreamLedger) -> list[float]:
    """Milliseconds from the call of append to the delivery to a following reader, one at a time."""
    arrived: asyncio.Queue[float] = asyncio.Queue()
    start = (await ledger.head()).position + 1

    async def follow() -> None:
        async for events in ledger.read(start, follow=True):
            for _ in events:
                arrived.put_nowait(time.perf_counter())

    reader = asyncio.create_task(follow())
    taken = []
    for event in events_of(BODY_BYTES, LIVE):
        began = time.perf_counter()
        await ledger.append(event)
        taken.append((await arrived.get() - began) * 1_000)
    reader.cancel()
    await asyncio.wait([reader])
    return taken[LIVE // 10 :]


async def bare_latency(client: Client) -> list[float]:
    """Milliseconds of an acknowledged publish with the bare client."""
    jetstream = client.jetstream()
    taken = []
    for number in range(LIVE):
        began = time.perf_counter()
        await jetstream.publish(f"ledger.default.knowledge.bare{number}.saved.user.bench", b"x" * BODY_BYTES)
        taken.append((time.perf_counter() - began) * 1_000)
    return taken[LIVE // 10 :]


async def measure() -> list[dict[str, Any]]:
    """Read all ways in turns. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "broker")
        access = await server.start()
        await ensure_stream(access)
        ledger = await JetStreamLedger.connect(access)
        client = await bare_client(access, "admin")
        try:
            await ledger.append_many(events_of(BODY_BYTES, EVENTS))
            mine, inbox, ordered = [], [], []
            for turn in range(ROUNDS):
                mine.append(await rate(EVENTS, lambda: ours(ledger)))
                inbox.append(await rate(EVENTS, partial(bare_inbox, client, f"bare{turn}")))
                ordered.append(await rate(EVENTS, lambda: bare_ordered(client)))
            fastest = max((inbox, ordered), key=statistics.median)
            delivered = statistics.median(await live_latency(ledger))
            published = statistics.median(await bare_latency(client))
        finally:
            await client.close()
            await ledger.close()
            await server.stop()
    way = "inbox, 1,000 a request" if fastest is inbox else "ordered consumer"
    return [
        {
            "row": "read, catching up",
            "ours": statistics.median(mine),
            "raw": statistics.median(fastest),
            "unit": "events/s",
            "ratio": statistics.median(m / f for m, f in zip(mine, fastest, strict=True)),
            "target": None,
            "note": f"bare: {way}; {EVENTS:,} events of {BODY_BYTES} B",
        },
        {
            "row": "append until read live, p50",
            "ours": delivered,
            "raw": published,
            "unit": "ms",
            "ratio": delivered / published,
            "target": None,
            "note": "bare: an acknowledged publish alone",
        },
    ]


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure())


if __name__ == "__main__":
    for line in run():
        print(line)
