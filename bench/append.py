"""Append benchmark: cost beside the bare client, one at a time and in atomic batches, fsync always.

Ours encodes the event, sets the message id and the expectations, and maps the answers; the bare side sends
prepared bodies without a message id. Both use one embedded server, in turns, in one process that collects garbage as
seldom as a node; a row is the median. The mixed history
(bench/mixed.py) is appended as a node does, which seals the words of persons; the bare side sends the same, sealed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import nats
import uvloop
from nats.aio.client import Client

from bench.mixed import MixedHistory
from ledger.broker.access import BrokerAccess, Role
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import MAX_PAYLOAD_BYTES
from ledger.broker.stream_setup import ensure_stream
from ledger.event import Appended, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.privacy.vault import Vault
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.runtime.gc_tuning import collect_seldom
from ledger.store.jetstream import JetStreamLedger
from ledger.stream import Change
from ledger.wire.envelope import encode
from ledger.wire.publication import publication
from producers.operations.sealing import SealingLedger

BODY_BYTES = 1_100
ROUNDS = 7
SINGLES = 400
MANY = 5_000
BATCH = 1_000

Result = TypeVar("Result")


def events_of(size: int, count: int, expects: int | None = None) -> list[NewEvent]:
    """`count` saved items whose envelopes have about `size` bytes, each for another entity."""
    padding = "x" * max(1, size - len(encode(_event("x", expects))))
    return [_event(padding, expects) for _ in range(count)]


def _event(content: str, expects: int | None) -> NewEvent:
    fact = KnowledgeSaved(types=["tool"], task="t", content=content, scopes=["public"], owner="user:bench")
    return NewEvent(fact, entity_id=uuid.uuid4().hex, actor="user:bench", expects=expects)


async def bare_client(access: BrokerAccess, role: Role) -> Client:
    """A plain client, with the permissions of a role."""
    return await nats.connect(access.url_for(role), inbox_prefix=access.inbox_prefix(role))


async def bare_batch(client: Client, messages: Sequence[tuple[str, bytes]]) -> None:
    """One atomic batch with the minimum that the protocol needs."""
    batch_id = uuid.uuid4().hex
    for number, (subject, body) in enumerate(messages, 1):
        headers = {"Nats-Batch-Id": batch_id, "Nats-Batch-Sequence": str(number)}
        if number == len(messages):
            headers["Nats-Batch-Commit"] = "1"
            answer = await client.request(subject, body, headers=headers, timeout=10)
            if b'"error"' in answer.data:
                raise RuntimeError(f"the broker refused the bare batch: {answer.data!r}")
        elif number == 1:
            await client.request(subject, body, headers=headers, timeout=10)
        else:
            await client.publish(subject, body, headers=headers)


async def rate(count: int, work: Callable[[], Awaitable[None]]) -> float:
    """Operations per second."""
    began = time.perf_counter()
    await work()
    return count / (time.perf_counter() - began)


async def measure() -> list[dict[str, Any]]:
    """Append both ways in turns. Returns the rows."""
    collect_seldom()
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "broker")
        access = await server.start()
        await ensure_stream(access)
        await ensure_keys_bucket(access)
        ledger = await JetStreamLedger.connect(access)
        client = await bare_client(access, "node")
        vault = await JetStreamVault.open(access, bytes(32))
        try:
            return [*await _rounds(ledger, client), *await _mixed_rounds(ledger, vault, client)]
        finally:
            await vault.close()
            await client.close()
            await ledger.close()
            await server.stop()


async def _rounds(ledger: JetStreamLedger, client: Client) -> list[dict[str, Any]]:
    jetstream = client.jetstream()
    rates: dict[str, list[float]] = {name: [] for name in ("one", "bare one", "many", "bare many", "expecting")}

    def ready(count: int) -> list[tuple[str, bytes]]:
        return [
            (f"ledger.default.knowledge.{event.entity_id}.saved.user.bench", encode(event))
            for event in events_of(BODY_BYTES, count)
        ]

    for turn in range(ROUNDS + 1):
        singles, bare_singles = events_of(BODY_BYTES, SINGLES), ready(SINGLES)
        many, bare_many = events_of(BODY_BYTES, MANY), ready(MANY)
        expecting = events_of(BODY_BYTES, MANY, expects=0)

        async def ours_one(events: list[NewEvent] = singles) -> None:
            for event in events:
                await ledger.append(event)

        async def bare_one(messages: list[tuple[str, bytes]] = bare_singles) -> None:
            for subject, body in messages:
                await jetstream.publish(subject, body)

        async def ours_many(events: list[NewEvent] = many) -> None:
            await ledger.append_many(events)

        async def bare_many_batches(messages: list[tuple[str, bytes]] = bare_many) -> None:
            for start in range(0, MANY, BATCH):
                await bare_batch(client, messages[start : start + BATCH])

        measured = {
            "one": await rate(SINGLES, ours_one),
            "bare one": await rate(SINGLES, bare_one),
            "many": await rate(MANY, ours_many),
            "bare many": await rate(MANY, bare_many_batches),
            "expecting": await rate(MANY, partial(ours_many, expecting)),
        }
        if turn:  # the first turn warms up
            for name, value in measured.items():
                rates[name].append(value)
    return [
        _row("append, one at a time", rates["one"], rates["bare one"], 0.95, "bare: JetStream publish"),
        _row("append, atomic batches of 1,000", rates["many"], rates["bare many"], 0.85, "bare: ADR-50 batch"),
        _row(
            "append, batches, each event the first of its entity",
            rates["expecting"],
            rates["bare many"],
            None,
            "bare: ADR-50 batch without expectations",
        ),
    ]


class _Sealed:
    """A ledger that keeps what it is given, sealed and encoded, instead of appending it."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, bytes]] = []

    async def append_changed(self, events: Sequence[NewEvent], change: Change) -> list[Appended]:
        sealed = await change(events)
        messages = [publication(replace(event, id=uuid.uuid4().hex), MAX_PAYLOAD_BYTES) for event in sealed]
        self.messages += [(each.subject, each.body) for each in messages]
        return []


async def _mixed_rounds(ledger: JetStreamLedger, vault: Vault, client: Client) -> list[dict[str, Any]]:
    """The same of the mixed history, whose events are sealed as they are appended."""
    jetstream, history = client.jetstream(), MixedHistory((ROUNDS + 1) * (MANY + SINGLES))
    events, kept = iter(history), _Sealed()
    ours, sealed = SealingLedger(ledger, vault, history.persons_of), SealingLedger(kept, vault, history.persons_of)  # type: ignore[arg-type]
    rates: dict[str, list[float]] = {name: [] for name in ("one", "bare one", "many", "bare many")}
    for turn in range(ROUNDS + 1):
        singles, many = list(islice(events, SINGLES)), list(islice(events, MANY))
        await sealed.append_many([*singles, *many])
        bare, kept.messages = kept.messages, []

        async def ours_one(events: list[NewEvent] = singles) -> None:
            for event in events:
                await ours.append(event)

        async def bare_one(messages: list[tuple[str, bytes]] = bare[:SINGLES]) -> None:
            for subject, body in messages:
                await jetstream.publish(subject, body)

        async def ours_many(events: list[NewEvent] = many) -> None:
            await ours.append_many(events)

        async def bare_many(messages: list[tuple[str, bytes]] = bare[SINGLES:]) -> None:
            for start in range(0, MANY, BATCH):
                await bare_batch(client, messages[start : start + BATCH])

        measured = {
            "one": await rate(SINGLES, ours_one),
            "bare one": await rate(SINGLES, bare_one),
            "many": await rate(MANY, ours_many),
            "bare many": await rate(MANY, bare_many),
        }
        if turn:  # the first turn warms up, and makes the keys
            for name, value in measured.items():
                rates[name].append(value)
    note = "bare: {} of the same, sealed before"
    return [
        _row("append, mixed, one at a time", rates["one"], rates["bare one"], 0.95, note.format("JetStream publish")),
        _row(
            "append, mixed, atomic batches of 1,000",
            rates["many"],
            rates["bare many"],
            0.85,
            note.format("ADR-50 batch"),
        ),
    ]


def _row(row: str, ours: list[float], raw: list[float], target: float | None, note: str) -> dict[str, Any]:
    ratio = statistics.median(mine / bare for mine, bare in zip(ours, raw, strict=True))
    return {
        "row": row,
        "ours": statistics.median(ours),
        "raw": statistics.median(raw),
        "unit": "events/s",
        "ratio": ratio,
        "target": None if target is None else f">= {target}",
        "note": f"{note}; about {BODY_BYTES:,} B, fsync always, ratio is the median of {len(ours)} pairs",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure())


if __name__ == "__main__":
    for line in run():
        print(line)
