"""Restart benchmark: time until a node is ready again, with a long log beside a short one (only new events are folded).

Ours: from the start of the process until its ready line, until its views are at the head, and until the first search is
answered, of a node with `--events` events (KLEDGER_BENCH_EVENTS); the other column is the same with 1,000 events. The
node is ended once by SIGTERM and once by kill -9. The medians of some rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from bench.corpus import history
from bench.rebuild import append, broker
from bench.visible import HttpClient, running_node

EVENTS, FEW = 200_000, 1_000
ROUNDS = 3
MOST_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Restart:
    """Seconds from the start of the process: its ready line, all views at the head, the first search answered."""

    ready: float
    caught_up: float
    searched: float


async def filled(directory: Path, events: int) -> None:
    """Create a data directory with `events` events in its log, folded and searchable."""
    (directory / "data").mkdir(parents=True)
    async with broker(directory / "data" / "broker") as access:
        await append(access, history(events), events)
    async with running_node(directory) as node:
        await at_the_head(node.http, 0.5)


async def at_the_head(address: str, look_every: float = 0.005) -> None:
    """Return when every view is at the head of the log."""
    while True:
        http = HttpClient(address)
        with contextlib.suppress(ConnectionError):
            status = await http.ask("GET", "/api/admin/status")
            if all(view["position"] == status["stream"]["head"] for view in status["views"]):
                return
        http.close()
        await asyncio.sleep(look_every)


async def restarted(directory: Path, *, killed: bool) -> Restart:
    """Start a node on the directory, measure it, and end it by SIGTERM or by kill -9."""
    began = time.perf_counter()
    async with running_node(directory) as node:
        ready = time.perf_counter() - began
        await at_the_head(node.http)
        caught_up = time.perf_counter() - began
        http = HttpClient(node.http)
        await http.ask("GET", "/api/knowledge/search?q=docker&record=false")
        searched = time.perf_counter() - began
        http.close()
        if killed:
            os.kill(node.pid, signal.SIGKILL)
    return Restart(ready, caught_up, searched)


async def measure(events: int, rounds: int) -> list[dict[str, Any]]:
    """The rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        sizes = {count: Path(directory) / str(count) for count in (FEW, events)}
        for count, data in sizes.items():
            await filled(data, count)
        restarts: dict[tuple[int, bool], list[Restart]] = {}
        for _ in range(rounds):
            for killed in (False, True):  # the first of a pair ends cleanly, so the second starts after a clean stop
                for count, data in sizes.items():
                    restart = await restarted(data, killed=killed)
                    restarts.setdefault((count, killed), []).append(restart)
    for step in ("ready", "caught_up", "searched"):
        few, many = (
            statistics.median(getattr(one, step) for killed in (False, True) for one in restarts[count, killed])
            for count in (FEW, events)
        )
        rows.append(
            {
                "row": f"restart until {step.replace('_', ' ')}, {events:,} beside {FEW:,} events",
                "ours": many,
                "raw": few,
                "unit": "s",
                "ratio": many / few,
                "target": f"<= {MOST_RATIO:g}",
                "note": f"median of {2 * rounds}, half of them after kill -9",
            }
        )
    return rows


def run(events: int | None = None, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    count = events or int(os.environ.get("KLEDGER_BENCH_EVENTS", EVENTS))
    return uvloop.run(measure(count, rounds))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    for row in run(options.events, options.rounds):
        print({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
