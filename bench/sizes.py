"""Sizes benchmark: processor time of the client and of the command, memory of an empty node, and its time until ready.

Processor time is of whole processes (user and system, the median of some runs, after one that is not counted), so what
else runs on the machine has little weight in it. Each is beside what no product could do without: an interpreter that
does nothing, the HTTP library, a command of ten lines, a GET of the same answer by a bare client. Memory is what all
processes of the node hold: a page that two of them share counts once. The sum of their resident set sizes, which counts
such a page twice, is in the note. Beside both stands a bare nats-server.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvloop

from bench.visible import KLEDGER, ROOT, HttpClient, environment, running_node
from ledger.broker.server import EmbeddedServer

ROUNDS = 9
STARTS = 3
SETTLED = 2.0
"""Seconds after its ready line in which an idle node ends what it has begun."""
MIB = 1024
_MAPPING = re.compile(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$")
CLIENT_S, HELP_S, SEARCH_S, NODE_MIB, READY_S = 0.15, 0.2, 0.3, 250, 2.0
TEN_LINES = """
import typer
app = typer.Typer(rich_markup_mode="rich")
@app.command()
def one(name: str = "a"):
    "One."
@app.command()
def two(name: str = "b"):
    "Two."
app(["--help"])
"""

Row = dict[str, Any]


def python(code: str) -> tuple[str, ...]:
    """The command that runs a piece of Python."""
    return sys.executable, "-c", code


def processor_seconds(command: Sequence[str], rounds: int, **settings: str) -> float:
    """What a command takes of the processor, the median of `rounds`."""
    compiled = environment(**settings)
    compiled.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    seconds = []
    for _ in range(rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=compiled)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(seconds[1:])


def processes(pid: int) -> list[int]:
    """A process and all that descend from it."""
    below = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [pid, *(each for child in below for each in processes(child))]


def memory(pid: int) -> tuple[float, float]:
    """What a process and all that descend from it hold, in MiB: each page once, and as the sum of their RSS.

    The pages of a file count as often as in the process that holds most of it. So no other program on the machine that
    has the same library open lowers the figure, as it would the kernel's own proportional one.
    """
    anonymous = total = 0
    of_files: dict[str, int] = {}
    for each in processes(pid):
        held: dict[str, int] = {}
        mapping, resident = "", 0
        for line in Path(f"/proc/{each}/smaps").read_text().splitlines():
            if (found := _MAPPING.match(line)) is not None:
                mapping = found[1]
                continue
            name, _, value = line.partition(":")
            if name == "Rss":
                resident = int(value.split()[0])
                total += resident
            elif name == "Anonymous":
                own = int(value.split()[0])
                anonymous += own
                held[mapping] = held.get(mapping, 0) + resident - own
        of_files |= {name: max(size, of_files.get(name, 0)) for name, size in held.items()}
    return (anonymous + sum(of_files.values())) / MIB, total / MIB


def _row(name: str, ours: float, raw: float, unit: str, target: float, note: str) -> Row:
    return {
        "row": name,
        "ours": ours,
        "raw": raw,
        "unit": unit,
        "ratio": ours / raw,
        "target": f"<= {target:g} {unit}",
        "note": note,
    }


def _commands(rounds: int) -> list[Row]:
    """What starts without a node."""
    nothing, http = processor_seconds(python("pass"), rounds), processor_seconds(python("import httpx"), rounds)
    package = processor_seconds(python("import kledger"), rounds)
    client = processor_seconds(python("from kledger import LedgerClient"), rounds)
    said = processor_seconds((*KLEDGER, "--help"), rounds)
    small = processor_seconds(python(TEN_LINES), rounds)
    return [
        _row("import kledger", package, nothing, "s", CLIENT_S, "beside python -c pass"),
        _row("from kledger import LedgerClient", client, http, "s", CLIENT_S, "beside import httpx"),
        _row("kledger --help", said, small, "s", HELP_S, "beside the help of a typer command of ten lines"),
    ]


async def _search(http: str, rounds: int) -> Row:
    """A search of the command, beside a GET of the same by a bare client."""
    target = f"http://{http}/api/knowledge/search?q=docker"
    bare = python(
        f"import http.client as c; a = c.HTTPConnection('{http}'); a.request('GET', '{target}'); a.getresponse().read()"
    )
    raw = await asyncio.to_thread(processor_seconds, bare, rounds)
    ours = await asyncio.to_thread(
        processor_seconds, (*KLEDGER, "search", "docker"), rounds, KLEDGER_URL=f"http://{http}"
    )
    return _row(
        "kledger search", ours, raw, "s", SEARCH_S, "of the command, not of the node; beside a GET by http.client"
    )


async def _node(starts: int, rounds: int) -> list[Row]:
    """An empty node beside a bare nats-server, and a search that is put to it."""
    ready: list[float] = []
    sizes: list[tuple[float, float]] = []
    bare_ready: list[float] = []
    bare_sizes: list[tuple[float, float]] = []
    rows: list[Row] = []
    for number in range(starts):
        with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
            began = time.perf_counter()
            server = EmbeddedServer(Path(directory) / "bare")
            await server.start()
            bare_ready.append(time.perf_counter() - began)
            assert server.pid is not None  # it has started
            await asyncio.sleep(SETTLED)
            bare_sizes.append(memory(server.pid))
            await server.stop()
            began = time.perf_counter()
            async with running_node(Path(directory)) as node:
                ready.append(time.perf_counter() - began)
                await asyncio.sleep(SETTLED)
                sizes.append(memory(node.pid))
                if number == starts - 1:
                    await HttpClient(node.http).ask("GET", "/api/knowledge/search?q=docker")
                    rows.append(await _search(node.http, rounds))
    once, rss = (statistics.median(each) for each in zip(*sizes, strict=True))
    bare, _ = (statistics.median(each) for each in zip(*bare_sizes, strict=True))
    first, bare_first = statistics.median(ready), statistics.median(bare_ready)
    counted = f"all its processes, each page once; {rss:.0f} as a sum of RSS; beside a bare nats-server"
    return [
        *rows,
        _row("an empty node, resident", once, bare, "MiB", NODE_MIB, counted),
        _row(
            "an empty node until ready",
            first,
            bare_first,
            "s",
            READY_S,
            f"median of {starts}; beside a bare nats-server",
        ),
    ]


def run(rounds: int = ROUNDS, starts: int = STARTS) -> list[Row]:
    """The rows of this benchmark."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return [*_commands(rounds), *uvloop.run(_node(starts, rounds))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--starts", type=int, default=STARTS)
    options = parser.parse_args()
    for row in run(options.rounds, options.starts):
        print({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
