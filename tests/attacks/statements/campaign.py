"""What becomes of a node to which all of this is stated? It reaches the head, answers every read, and a replay agrees.

A stall is a view that does not move: progress is waited for, not time, so that a slow machine is no failure. Messages
go in order over one connection, many under way at once; requests go beside them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson

from kledger.contract.errors import LedgerError
from ledger.broker.connection import BrokerConnection, Pending
from tests.attacks.statements.statements import Message, Request, Statements
from tests.journeys.running_node import RunningNode, result_of

STALL_SECONDS = 180.0
"""A view that is behind and has not moved for so long stands still."""
_REQUESTS_AT_ONCE = 16
_MESSAGES_AT_ONCE = 256
_LOOK_EVERY = 1_000
_SAMPLE = 6
"""Lists that are read after each batch of statements; all of them are read in the end."""
_TRIES = 3
_PATIENCE = 300.0
"""Seconds for one answer: a machine that does other work besides is slow, and that is no failure."""
_CODED = {"broker_unavailable", "not_available", "seal_broken", "view_behind"}
"""What may be answered with a status of 500 or more: each says what is there, and none is the node's fault."""
_READS = (
    "/api/knowledge/search?q=selenium+login&min_score=0&top_k=100",
    "/api/knowledge/search?q=%E7%99%BB%E5%BD%95&min_score=0&top_k=100",
    "/api/knowledge?limit=1000",
    "/api/recall/startup?q=selenium&min_score=0&top_k=80&profile_k=100",
    "/api/recall/startup?min_score=0&top_k=80&profile_k=100",
    "/api/resource?limit=1000",
    "/api/extractions",
    "/api/conflicts",
    "/api/evolutions",
    "/api/slims",
    "/api/scope_types",
    "/api/v1/memories",
    "/api/v1/memories/user",
    "/api/v1/memories/user/prompt",
    "/api/v1/memories/work/history",
    "/api/admin/status",
    "/api/admin/refused?limit=1000",
    "/metrics",
)


@dataclass
class Told:
    """What came of a campaign. `broken` is empty when every promise held."""

    statements: int = 0
    answers: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    events: int = 0
    reads: int = 0
    longest_still: float = 0.0
    bytes: int = 0
    well_formed: int = 0
    counted: int = 0
    """Of the well-formed events, those that count."""
    broken: list[str] = field(default_factory=list)


async def run(
    node: RunningNode,
    seed: int,
    count: int,
    *,
    largest: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Told:
    """Send `count` statements, wait for the views, read everything, verify."""
    told = Told()
    made = Statements(seed, largest)
    sampling = random.Random(seed)
    publisher = await BrokerConnection.open(node.access, "writer", name="adversary")
    async with httpx.AsyncClient(base_url=node.url, timeout=_PATIENCE) as http:
        shown = 0
        for first in range(0, count, _LOOK_EVERY):
            batch = [made.next() for _ in range(min(_LOOK_EVERY, count - first))]
            told.bytes += sum(len(one.body or b"") for one in batch)
            messages = [one for one in batch if isinstance(one, Message)]
            requests = [one for one in batch if isinstance(one, Request)]
            await asyncio.gather(_publish_all(publisher, messages), _ask_all(http, requests, told, first))
            told.statements += len(batch)
            await _reach_the_head(http, told)
            if not any("stands still" in one for one in told.broken):
                await _count(http, told, [one.well_formed for one in messages if one.well_formed])
                await _read(http, told, sampling.sample(_READS, _SAMPLE))
            tell(
                f"{told.statements:6} statements  {told.events:6} events  {told.counted} of {told.well_formed} "
                f"well-formed ones count  {len(told.broken)} broken"
            )
            for one in told.broken[shown:]:
                tell(f"       {one}")
            shown = len(told.broken)
            if any("stands still" in one for one in told.broken):
                break
        await _read(http, told)
    await publisher.close()
    await asyncio.to_thread(_verify, node, told)
    return told


async def _ask_all(http: httpx.AsyncClient, requests: list[Request], told: Told, first: int) -> None:
    waiting = iter(enumerate(requests, first))

    async def some() -> None:
        for number, request in waiting:
            await _ask(http, request, told, f"request {number}")

    async with asyncio.TaskGroup() as workers:
        for _ in range(_REQUESTS_AT_ONCE):
            workers.create_task(some())


async def _publish_all(publisher: BrokerConnection, messages: list[Message]) -> None:
    """Send messages in their order; what the broker refuses is not in the log."""
    under_way: deque[tuple[Message, Pending]] = deque()

    async def settle() -> None:
        message, pending = under_way.popleft()
        with suppress(LedgerError):
            await publisher.answer(pending, message.subject, _PATIENCE)

    for message in messages:
        headers = {} if message.claimed is None else {"Nats-Msg-Id": message.claimed}
        with suppress(LedgerError):
            await publisher.until_connected(_PATIENCE)
            under_way.append((message, await publisher.ask(message.subject, message.body, headers)))
        if len(under_way) >= _MESSAGES_AT_ONCE:
            await settle()
    while under_way:
        await settle()


async def _ask(http: httpx.AsyncClient, asked: Request, told: Told, what: str) -> None:
    headers = {name: value for name, value in asked.headers.items() if value.isascii()}
    try:
        answer = await _answered(http, asked.method, asked.path, asked.body, headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        told.broken.append(f"{what}: {asked.method} {asked.path[:200]}: {error!r}")
        return
    told.answers[answer.status_code] += 1
    _judge(answer, told, f"{what}: {asked.method} {asked.path[:200]} {(asked.body or b'')[:500]!r}")


async def _answered(
    http: httpx.AsyncClient, method: str, path: str, body: bytes | None, headers: dict[str, str]
) -> httpx.Response:
    """An answer. That the node closed an idle connection, with this request on its way, is none."""
    for _ in range(_TRIES - 1):
        with suppress(httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            return await http.request(method, path, content=body, headers=headers)
    return await http.request(method, path, content=body, headers=headers)


def _judge(answer: httpx.Response, told: Told, what: str) -> None:
    if answer.status_code < 400:
        return
    try:
        code = orjson.loads(answer.content)["error"]["code"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        code = None
    if code is None or (answer.status_code >= 500 and code not in _CODED):
        told.broken.append(f"{what}: {answer.status_code} {answer.text[:500]}")


async def _reach_the_head(http: httpx.AsyncClient, told: Told) -> None:
    """Return once every view has what the log has, or one of them stands still."""
    before: list[int] = []
    moved = time.monotonic()
    while True:
        status = (await http.get("/api/admin/status")).json()
        head = status["stream"]["head"]
        now = [view["position"] for view in status["views"]]
        told.events = head
        if min(now) >= head:
            return
        if now != before:
            told.longest_still = max(told.longest_still, time.monotonic() - moved if before else 0.0)
            before, moved = now, time.monotonic()
        elif time.monotonic() - moved > STALL_SECONDS:
            told.broken.append(f"a view stands still: {now} of {head}, {status.get('reasons')}")
            return
        await asyncio.sleep(0.1)


async def _count(http: httpx.AsyncClient, told: Told, ids: list[str]) -> None:
    """How many of these events count?"""
    told.well_formed += len(ids)
    named = ", ".join(f"'{one}'" for one in ids)
    for (found,) in await _sql(http, told, f"SELECT count(*) FROM events WHERE event_id IN ({named})") if ids else ():
        told.counted += found


async def _read(http: httpx.AsyncClient, told: Told, lists: Sequence[str] | None = None) -> None:
    """Read these lists as an operator, as a user and as an agent does; without any, all that was folded."""
    who: tuple[dict[str, str], ...] = ({}, {"X-Ledger-User": "ada"}, {"X-Ledger-Agent": "scribe"})
    paths = list(_READS if lists is None else lists)
    if lists is None:
        rows = await _sql(http, told, "SELECT DISTINCT id FROM knowledge USING SAMPLE 300")
        paths += [f"/api/knowledge/{_quoted(one)}{more}" for (one,) in rows for more in ("", "/history", "/why")]
        rows = await _sql(http, told, "SELECT DISTINCT id FROM resources USING SAMPLE 100")
        paths += [f"/api/resource/{_quoted(one)}{more}" for (one,) in rows for more in ("", "/history")]
        rows = await _sql(http, told, "SELECT DISTINCT goal_id FROM goals USING SAMPLE 100")
        paths += [f"/api/goals/{_quoted(one)}" for (one,) in rows]
        for (name,) in await _sql(http, told, "SELECT DISTINCT table_name FROM information_schema.columns"):
            await _sql(http, told, f'SELECT * FROM "{name}"')
    for path in paths:
        for headers in who if path in _READS else who[:1]:
            answer = await _answered(http, "GET", path, None, headers)
            told.reads += 1
            _judge(answer, told, f"reading {path[:200]} as {headers}")
            if path in _READS and answer.status_code not in (200, 403, 404, 422):
                told.broken.append(f"reading {path} as {headers}: {answer.status_code} {answer.text[:300]}")
    for headers in who[1:]:
        body = {"description": "log in with selenium", "top_k": 100, "min_score": 0}
        answer = await http.post("/api/goals/mine/focus", json=body, headers=headers)
        told.reads += 1
        _judge(answer, told, f"focusing as {headers}")
    await _reach_the_head(http, told)
    told.refused = Counter(dict(await _sql(http, told, "SELECT code, count(*) FROM refused_events GROUP BY code")))
    if told.refused["unfoldable"] and not any("unfoldable" in one for one in told.broken):
        rows = await _sql(http, told, "SELECT position, subject, reason FROM refused_events WHERE code = 'unfoldable'")
        told.broken.append(f"unfoldable events were parked: {rows[:5]}")


async def _sql(http: httpx.AsyncClient, told: Told, query: str) -> list[Any]:
    answer = await http.post("/api/admin/sql", json={"query": query})
    told.reads += 1
    _judge(answer, told, query)
    return list(answer.json()["rows"]) if answer.status_code == 200 else []


def _quoted(one: str) -> str:
    return httpx.QueryParams({"q": one}).__str__().removeprefix("q=").replace("+", "%20")


def _verify(node: RunningNode, told: Told) -> None:
    with node.client() as ledger:
        result = result_of(ledger, "verify")
    if not result["equal"]:
        told.broken.append(f"a replay differs: {str(result.get('differences', result))[:2000]}")
