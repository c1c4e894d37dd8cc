"""`make demo`: a real node, and the commands that a user would type, in about a minute.

Starts `kledger up` on a free port with a data directory of its own, runs each command below with its real
output, checks that output, and stops the node. Exits with 0 only when every check passed.
"""

from __future__ import annotations

import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from producers.cli.answer import NO_NODE
from producers.cli.encoding import degrade

READY_WITHIN = 120.0  # seconds
STOPPED_WITHIN = 15.0
ITEM = "night-deploys"
TRACE = "trace-release-44"
BY_OWNER = "SELECT owner, count(*) AS items FROM knowledge GROUP BY owner ORDER BY items DESC, owner LIMIT 5"


def _kledger() -> list[str]:
    installed = Path(sys.executable).with_name("kledger")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "producers.cli.main"]


class NodeGone(Exception):
    """The node of the demonstration did not start, or ended by itself, or ended with an error: its text says which."""


@dataclass
class Demo:
    """Runs commands and checks their output; `broken` collects the checks that failed."""

    environment: dict[str, str]
    broken: list[str] = field(default_factory=list)

    def heading(self, title: str) -> None:
        """Print the heading of the next part."""
        typer.echo(f"\n## {title}")

    def run(self, *arguments: str, promises: tuple[str, ...] = ()) -> str:
        """Run one command, show it with its output, and check that the output holds each promise."""
        typer.echo(f"\n$ kledger {shlex.join(arguments)}")
        process = subprocess.run(
            [*_kledger(), *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        typer.echo("\n".join(line.rstrip() for line in process.stdout.splitlines()))
        if process.returncode == NO_NODE:
            raise NodeGone("the node did not answer any more")
        if process.returncode != 0:
            self.miss(f"kledger {arguments[0]} exited with {process.returncode}")
        output = " ".join(process.stdout.split())
        for promise in promises:
            if promise not in output:
                self.miss(f"kledger {arguments[0]} did not say {promise!r}")
        return output

    def miss(self, what: str) -> None:
        """Note a check that failed."""
        typer.echo(f"!! {what}")
        self.broken.append(what)


def _story(demo: Demo) -> None:
    demo.heading("Knowledge gets in, once")
    demo.run("import", "--sample", promises=("60 saved", "0 refused"))
    demo.run("import", "--sample", promises=("0 saved, 60 unchanged",))

    demo.heading("Somebody saves an item, others say whether it helped")
    saved = demo.run(
        *("save", "--id", ITEM, "--types", "strategy", "--scopes", "public", "--user", "jonas"),
        *("--task", "Deploy at night", "--content", "Deploy on Friday night, when nobody uses the service."),
        *("--trace", TRACE, "--message", "msg-release-44-01"),
        promises=(f"saved {ITEM} at position",),
    )
    demo.run(
        *("rate", ITEM, "--helpful", "--agent", "deployer", "--task", "release 44"),
        *("--outcome", "no user noticed", "--trace", TRACE),
        promises=("helpful at position",),
    )
    demo.run(
        *("rate", ITEM, "--harmful", "--user", "mei", "--task", "release 45"),
        *("--reason", "broken until Monday", "--trace", "trace-release-45"),
        promises=("harmful at position",),
    )

    demo.heading("Search, in both languages")
    demo.run("search", "roll back a broken release", "--top-k", "3", promises=("sample-roll-back-first",))
    demo.run("search", "测试有时候会失败", "--top-k", "3", promises=("sample-zh-flaky-test",))

    demo.heading("The owner revises it; what was known before stays known")
    revised = "Deploy on Tuesday before noon, when everybody can help."
    demo.run(
        *("revise", ITEM, "--user", "jonas", "--content", revised, "--reason", "release 45"),
        *("--trace", "trace-release-45"),
        promises=(f"revised {ITEM} at position",),
    )
    demo.run("search", "deploy at night", "--top-k", "1", promises=(ITEM, "Tuesday"))
    position = re.search(r"at position (\d+)", saved)
    before = position.group(1) if position else "1"
    demo.run("search", "deploy at night", "--top-k", "1", "--as-of", before, promises=(ITEM, "Friday"))

    demo.heading("Its whole life, and where everything came from")
    demo.run("history", ITEM, promises=("Friday", "Tuesday", "helpful", "harmful"))
    demo.run("lineage", ITEM, promises=(f"trace:{TRACE}", "trace:trace-release-45"))
    demo.run("lineage", f"trace:{TRACE}", promises=(ITEM,))

    demo.heading("Analysts ask the live view")
    demo.run("sql", BY_OWNER, promises=("owner", "5 rows"))

    demo.heading("The views follow from the log: rebuilt from nothing they are the same")
    demo.run("rebuild", promises=("digests equal",))
    demo.run("verify", promises=("views equal",))
    demo.run("status", promises=("healthy yes",))


@contextmanager
def _node(data: Path, http: str, log: Path) -> Iterator[None]:
    """A running node that has printed its ready line; its log goes to a file. Raises NodeGone."""
    typer.echo(f"$ kledger up --data {data} --http {http}")
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*_kledger(), "up", "--data", str(data), "--http", http],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf-8",
        )
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    try:
        try:
            ready = lines.get(timeout=READY_WITHIN)
        except queue.Empty:
            raise NodeGone(
                f"the node was not ready within {READY_WITHIN:g} s: is the machine busy with other work?"
            ) from None
        if ready is None:
            raise NodeGone("the node ended before it was ready")
        typer.echo(ready)
        yield
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            raise NodeGone(f"the node did not stop within {STOPPED_WITHIN:g} s") from None
        if code != 0:
            raise NodeGone(f"the node ended with {code}")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    if process.stdout is not None:
        with process.stdout as stream:
            for line in stream:
                lines.put(line.rstrip())
    lines.put(None)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-20:])


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def _environment(http: str) -> dict[str, str]:
    """The environment of this process without KLEDGER_ variables, and with the address of this node."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KLEDGER_")}
    return {"COLUMNS": "110", "PYTHONUTF8": "1"} | kept | {"KLEDGER_URL": f"http://{http}"}


def main() -> int:
    """Run the demonstration; 0 when every check passed."""
    degrade()
    began = time.monotonic()
    http = _free_address()
    demo = Demo(_environment(http))
    with tempfile.TemporaryDirectory(prefix="kledger-demo-") as folder:
        log = Path(folder) / "node.log"
        demo.heading("A node of its own")
        try:
            with _node(Path(folder) / "data", http, log):
                _story(demo)
                demo.heading("Stopping the node")
        except NodeGone as gone:
            demo.miss(str(gone))
        seconds = time.monotonic() - began
        if demo.broken:
            typer.echo(f"\n{len(demo.broken)} promises did not hold, in {seconds:.0f} s:")
            typer.echo("\n".join(f"  {what}" for what in demo.broken))
            tail = _tail(log)
            typer.echo(f"\nThe log of the node ends:\n{tail}" if tail else "\nThe log of the node is empty.")
            return 1
    typer.echo(f"\nEvery promise held, in {seconds:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
