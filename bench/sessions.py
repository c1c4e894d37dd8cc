"""Sessions benchmark: appending messages beside a bare publish of them, and reading what fits a window.

Both publish to streams of one embedded server, fsync always, in turns. The context is that of a session of 10,000
messages, after each further append.

Then a node is asked over HTTP whose model takes 10 s for each answer: requests that cross a threshold, so that the
model has something to do, beside requests that do not.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.visible import HttpClient, running_node
from ledger.broker.server import EmbeddedServer
from ledger.privacy.vault import MemoryVault
from ledger.sessions.context import context_of
from ledger.sessions.head import Head
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.port import NewRecord
from ledger.sessions.settings import SessionSettings
from ledger.sessions.store import SessionStore
from ledger.sessions.subjects import SessionKey
from ledger.sessions.tokens import counter_for
from producers.operations.sessions.context import conversation_of
from producers.operations.sessions.whose import Found

MESSAGES, REQUEST = 10_000, 100
CONTEXTS = 200
CROSSINGS, WARM_UP = 80, 5
SETTLED = 0.05
"""Seconds before each request, in which what the one before it began beside it comes to rest."""
MODEL_SECONDS = 10.0
BELOW, ABOVE = 0.70, 0.80
"""What a conversation takes of the budget: level 2 is asked for above 0.75 of it."""
TURNS = 20
"""Extraction is asked at the 20th message of the user."""
MOST_RATIO = 1.2
_KEY = SessionKey("bench", "user:mei", "s-1")


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(_run()) + uvloop.run(_over_http()) + uvloop.run(_with_a_slow_model())


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


async def _over_http() -> list[dict[str, Any]]:
    """The same appends as a node answers them, beside a bare publish to a broker of its own, in turns."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as data:
        server = EmbeddedServer(Path(folder) / "broker")
        access = await server.start()
        try:
            await ensure_sessions_stream(access)
            stream = await JetStreamSessions.open(access, name="bench")
            ours, raw = 0.0, 0.0
            async with running_node(Path(data)) as node:
                http = HttpClient(node.http, agent="bench")
                for batch in range(MESSAGES // REQUEST):
                    messages = said(batch * REQUEST, REQUEST)
                    body = orjson.dumps({"messages": messages})
                    began = time.perf_counter()
                    await http.ask("POST", "/api/sessions/s-1/messages", body)
                    ours += time.perf_counter() - began
                    bare = [
                        NewRecord(f"sessions.raw.{batch}.{n}", orjson.dumps(each)) for n, each in enumerate(messages)
                    ]
                    began = time.perf_counter()
                    await stream.put(bare)
                    raw += time.perf_counter() - began
                http.close()
            await stream.close()
        finally:
            await server.stop()
    return [
        {
            "row": f"the same over HTTP, in requests of {REQUEST}",
            "ours": round(MESSAGES / ours),
            "raw": round(MESSAGES / raw),
            "unit": "messages/s",
            "ratio": round(raw / ours, 2),
            "target": ">= 0.5",
            "note": f"a node of its own, beside a bare publish in atomic batches; load {os.getloadavg()[0]:.1f}",
        }
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


@dataclass
class SlowModel:
    """A server in the form of the OpenAI API whose answers take a while; `waiting` are those that have begun."""

    asked: int = 0
    waiting: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, as long as the client keeps it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                request = await reader.readexactly(int(length.partition(b":")[2]))
                self.asked, self.waiting = self.asked + 1, self.waiting + 1
                await asyncio.sleep(MODEL_SECONDS)
                self.waiting -= 1
                summary: dict[str, Any] = dict.fromkeys(_SUMMARY, "the lamp")
                found: dict[str, Any] = {"items": []}
                told = found if b"<message id=" in request else summary
                body = orjson.dumps(_completion(orjson.dumps(told).decode()))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client, or the benchmark, has ended
        finally:
            self._tasks.discard(task)
            writer.close()

    def stop(self) -> None:
        """End what is under way."""
        for task in self._tasks:
            task.cancel()


_SUMMARY = ("discussed", "decided", "concluded")


def _completion(content: str) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "slow", "choices": [choice], "usage": usage}


@asynccontextmanager
async def _slow_model() -> AsyncIterator[tuple[SlowModel, str]]:
    model = SlowModel()
    server = await asyncio.start_server(model.answer, "127.0.0.1", 0)
    try:
        yield model, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()
        model.stop()


async def _with_a_slow_model() -> list[dict[str, Any]]:
    async with _slow_model() as (model, url):
        with tempfile.TemporaryDirectory() as folder:
            models = {"KLEDGER_MODEL_URL": url, "KLEDGER_MODEL": "slow", "KLEDGER_MODEL_SUMMARISE": "slow"}
            async with running_node(Path(folder), **models) as node:
                http = HttpClient(node.http, agent="bench")
                contexts = await _crossing_contexts(http, model)
                appends = await _crossing_appends(http, model)
                http.close()
    return [
        _crossing_row("context that asks for summaries, beside one that does not", *contexts),
        _crossing_row("append that asks for extraction, beside one that does not", *appends),
    ]


async def _crossing_contexts(http: HttpClient, model: SlowModel) -> tuple[list[float], list[float], int]:
    """Seconds of contexts that cross the threshold of level 2, and of ones just below; answers the model held then."""
    crossed, plain, held = list[float](), list[float](), 0
    for number in range(WARM_UP + CROSSINGS):
        path = f"/api/sessions/c-{number}"
        await http.ask("POST", f"{path}/messages", orjson.dumps({"messages": said(0, 40)}))
        used = (await http.ask("GET", f"{path}/context?max_tokens=1000000"))["used"]
        share = SessionSettings().share
        for level, taken in ((BELOW, plain), (ABOVE, crossed)):
            window = int(used / share / level)
            await asyncio.sleep(SETTLED)
            began = time.perf_counter()
            cut = await http.ask("GET", f"{path}/context?max_tokens={window}")
            taken.append(time.perf_counter() - began)
            assert (cut["pending"] is not None) == (level == ABOVE), (cut["level"], cut["pending"], used, window)
        held = max(held, model.waiting)
    assert held > 0, "the model had nothing to do"
    return crossed[WARM_UP:], plain[WARM_UP:], held


async def _crossing_appends(http: HttpClient, model: SlowModel) -> tuple[list[float], list[float], int]:
    """Seconds of appends of the message that extraction is asked at, and of the one before it."""
    crossed, plain, held = list[float](), list[float](), 0
    for number in range(WARM_UP + CROSSINGS):
        path = f"/api/sessions/a-{number}/messages"
        spoken = [each | {"role": "user"} for each in said(0, TURNS)]
        await http.ask("POST", path, orjson.dumps({"messages": spoken[:-2]}))
        for message, taken in ((spoken[-2], plain), (spoken[-1], crossed)):
            body = orjson.dumps({"messages": [message]})
            await asyncio.sleep(SETTLED)
            began = time.perf_counter()
            await http.ask("POST", path, body)
            taken.append(time.perf_counter() - began)
        held = max(held, model.waiting)
    assert held > 0, "the model had nothing to do"
    return crossed[WARM_UP:], plain[WARM_UP:], held


def _crossing_row(row: str, crossed: list[float], plain: list[float], held: int) -> dict[str, Any]:
    ours, raw = statistics.median(crossed) * 1_000, statistics.median(plain) * 1_000
    slowest = [statistics.quantiles(each, n=20)[-1] * 1_000 for each in (crossed, plain)]
    return {
        "row": row,
        "ours": round(ours, 2),
        "raw": round(raw, 2),
        "unit": "ms, median",
        "ratio": round(ours / raw, 2),
        "target": f"<= {MOST_RATIO}",
        "note": f"the model takes {MODEL_SECONDS:.0f} s, {held} answers under way; p95 {slowest[0]:.2f} beside "
        f"{slowest[1]:.2f} ms, ratio {slowest[0] / slowest[1]:.2f}; {CROSSINGS} each; load {os.getloadavg()[0]:.1f}",
    }
