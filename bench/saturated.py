"""Saturation benchmark: saves a second over HTTP with eight clients, beside a minimal HTTP server that publishes.

A real node, and in turns with it bench/minimal_publisher.py: the same server library, no framework, a bare client, a
broker that syncs each message as well. Both are sent the same bodies by the same eight clients, each one after
another. Meanwhile somebody else asks the view for little, ten times a second: its answer says how far the view is.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.corpus import payloads
from bench.minimal_server import minimal_server
from bench.visible import HttpClient, percentile, running_node

CLIENTS = 8
ROUNDS = 4
SECONDS = 8.0
WARM_UP_SECONDS = 2.0
LOOK_SECONDS = 0.1
MOST_A_SECOND = 4_000


@dataclass(slots=True)
class Round:
    """What one round of saving came to."""

    seconds: float = 0.0
    taken: list[float] = field(default_factory=list)
    behind: list[float] = field(default_factory=list)
    kept: deque[tuple[int, float]] = field(default_factory=deque)
    """Position and time of the saves that nobody has seen in the view yet."""

    @property
    def rate(self) -> float:
        return len(self.taken) / self.seconds


async def save_for(
    seconds: float, http: HttpClient, bodies: Iterator[bytes], onlooker: HttpClient | None = None
) -> Round:
    """CLIENTS clients that save for so many seconds, each one item after another; until the onlooker has seen all."""
    done, began = Round(), time.perf_counter()

    async def client() -> None:
        while (asked := time.perf_counter()) < began + seconds:
            answer = await http.ask("POST", "/api/knowledge", next(bodies))
            now = time.perf_counter()
            done.taken.append((now - asked) * 1_000)
            done.kept.append((answer["position"], now))

    saving = asyncio.gather(*(client() for _ in range(CLIENTS)))
    looking = None if onlooker is None else asyncio.create_task(look(onlooker, done, saving))
    await saving
    done.seconds = time.perf_counter() - began
    if looking is not None:
        await looking
    return done


async def look(http: HttpClient, done: Round, saving: asyncio.Future[Any]) -> None:
    """Note again and again how far the view is behind, until all is saved and in it."""
    while not saving.done() or done.kept:
        await asyncio.sleep(LOOK_SECONDS)
        asked = time.perf_counter()
        upto = (await http.ask("GET", "/api/scope_types"))["position"]
        done.kept = deque((position, since) for position, since in done.kept if position > upto)
        # what was saved since it was asked is not in the answer, however fast the view is
        done.behind.append(max((asked - since for _, since in done.kept), default=0.0))


async def measure(seconds: float, rounds: int) -> list[dict[str, Any]]:
    """Save at the node and at the minimal server, in turns. Returns the rows."""
    bodies = [orjson.dumps(payload) for payload in payloads(int(MOST_A_SECOND * (seconds * rounds + WARM_UP_SECONDS)))]
    mine, theirs = iter(bodies), cycle(bodies)  # the node takes each id once
    ours, raw = [], []
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kledger-bench-")))
        (directory / "node").mkdir()
        node = await stack.enter_async_context(running_node(directory / "node"))
        minimal = await stack.enter_async_context(minimal_server("minimal_publisher", directory / "minimal"))
        http, bare, onlooker = HttpClient(node.http), HttpClient(minimal), HttpClient(node.http, user="onlooker")
        for each in (http, bare, onlooker):
            stack.callback(each.close)
        await save_for(WARM_UP_SECONDS, http, mine, onlooker)
        await save_for(WARM_UP_SECONDS, bare, theirs)
        for _ in range(rounds):
            ours.append(await save_for(seconds, http, mine, onlooker))
            raw.append(await save_for(seconds, bare, theirs))
    return [_rate_row(ours, raw), _behind_row(ours)]


def _rate_row(ours: list[Round], raw: list[Round]) -> dict[str, Any]:
    mine, theirs = (statistics.median(each.rate for each in rounds) for rounds in (ours, raw))
    late, bare_late = (percentile([ms for each in rounds for ms in each.taken], 99) for rounds in (ours, raw))
    return {
        "row": f"saves over HTTP, {CLIENTS} clients",
        "ours": mine,
        "raw": theirs,
        "unit": "saves/s",
        "ratio": mine / theirs,
        "target": ">= 0.5",
        "note": "raw: the same server library and a bare client that publishes the same bodies, no framework, no view; "
        f"median of {len(ours)} rounds; p99 {late:.0f} ms, raw {bare_late:.0f} ms",
    }


def _behind_row(ours: list[Round]) -> dict[str, Any]:
    worst = max(max(each.behind) for each in ours)
    middle = statistics.median(seconds for each in ours for seconds in each.behind)
    return {
        "row": f"the view behind the log, {CLIENTS} clients that save",
        "ours": worst,
        "raw": None,
        "unit": "s",
        "ratio": None,
        "target": "<= 1 s",
        "note": f"the age of the oldest save that the view does not have, the worst look; median {middle:.2f} s",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(SECONDS, ROUNDS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.saturated", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long a round takes")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = parser.parse_args()
    for line in uvloop.run(measure(chosen.seconds, chosen.rounds)):
        print(line)
