"""Sessions benchmark: appending messages beside a bare publish of them, and reading what fits a window.

Both publish to streams of one embedded server, fsync always, in turns. The context is that of a session of 10,000
messages, after each further append.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson
import uvloop

from ledger.broker.server import EmbeddedServer
from ledger.privacy.vault import MemoryVault
from ledger.sessions.context import context_of
from ledger.sessions.head import Head
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.port import NewRecord
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.tokens import counter_for
from producers.operations.sessions.context import conversation_of
from producers.operations.sessions.whose import Found

MESSAGES, REQUEST = 10_000, 100
CONTEXTS = 200
_KEY = SessionKey("bench", "user:mei", "s-1")


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(_run())


def said(first: int, count: int) -> list[dict[str, Any]]:
    """Messages of about 300 bytes, in two languages."""
    words = "How do I roll this back without losing what was written? 怎么回滚而不丢失已经写入的内容？" * 2
    return [
        {"id": f"m-{n}", "role": ("user", "assistant")[n % 2], "content": f"{n} {words}"}
        for n in range(first, first + count)
    ]


async def _run() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedServer(Path(folder) / "broker")
        access = await server.start()
        try:
            await ensure_sessions_stream(access)
            stream = await JetStreamSessions.open(access, name="bench")
            store = SessionStore(stream, MemoryVault())
            head = Head(opened=1, begun=1)
            ours, raw = 0.0, 0.0
            for batch in range(MESSAGES // REQUEST):
                messages = said(batch * REQUEST, REQUEST)
                began = time.perf_counter()
                head = (await store.append(_KEY, head, messages, 1_000)).head
                ours += time.perf_counter() - began
                bare = [NewRecord(f"sessions.raw.{batch}.{n}", orjson.dumps(each)) for n, each in enumerate(messages)]
                began = time.perf_counter()
                await stream.put(bare)
                raw += time.perf_counter() - began
            took = await _contexts(store, head)
            await store.close()
        finally:
            await server.stop()
    return [
        {
            "row": f"append {MESSAGES:,} messages in requests of {REQUEST}",
            "ours": round(MESSAGES / ours),
            "raw": round(MESSAGES / raw),
            "unit": "messages/s",
            "ratio": round(raw / ours, 2),
            "target": ">= 0.5",
            "note": "sealed, numbered and once each, beside a bare publish in atomic batches of 100",
        },
        {
            "row": f"context of a session of {MESSAGES:,} messages",
            "ours": round(statistics.quantiles(took, n=20)[-1] * 1_000, 2),
            "raw": None,
            "unit": "ms, p95",
            "ratio": None,
            "target": "<= 15 ms",
            "note": f"each after a further message; median {statistics.median(took) * 1_000:.2f} ms",
        },
    ]


async def _contexts(store: SessionStore, head: Head) -> list[float]:
    """Seconds of each context, without the append before it."""
    counter, took = counter_for(None), []
    for number in range(CONTEXTS):
        head = (await store.append(_KEY, head, said(MESSAGES + number, 1), 1_000)).head
        began = time.perf_counter()
        now = await store.head(_KEY)
        assert now is not None
        tail = await store.tail(_KEY, now)
        conversation = await conversation_of(store, Found(_KEY, now))
        context_of(conversation, 5_600, tail.counting(counter), store.settings)
        took.append(time.perf_counter() - began)
    return took
