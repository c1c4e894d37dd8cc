"""Logs to back up: what writers said in two languages, and what a broker takes that no writer of ours would say."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ledger.backup.checking import read_backup
from ledger.backup.writing import BackedUp, back_up
from ledger.event import StoredEvent
from ledger.stream import Ledger
from tests.integrity.logs import EPOCH, ListedLedger
from tests.journeys.running_node import ENVIRONMENT, ROOT
from tests.projections.histories import saved, stored


def history(count: int) -> list[StoredEvent]:
    """Items in Chinese, with ids as our doors set them; always the same ones."""
    said = [
        replace(saved(f"条目-{n}", task="备份", content=f"第 {n} 号备件在仓库。" * 3), id=f"id-{n}", time=EPOCH)
        for n in range(count)
    ]
    return [event._replace(message_id=one.id) for event, one in zip(stored(said), said, strict=True)]


def odd_events(first: int) -> list[StoredEvent]:
    """What only a foreign client publishes: no id, an id that is no header, one id twice, bytes that are no text."""
    subject, at = "ledger.default.knowledge.odd.saved.user.ada", 1_790_000_000_000_000_000
    told = [
        (subject, b"", ""),
        (subject, b"\xff\xfe\x00\x01", "bytes"),
        (subject, b"a\x00b", "bytes"),
        ("ledger.短", "中文".encode(), "王 小明"),
        ("ledger.*.>", b"{}", "caf\udce9"),
        (subject, b"{}", "  spaced  id"),
    ]
    return [StoredEvent(first + n, at + n, *one) for n, one in enumerate(told)]


async def backed_up(events: Sequence[StoredEvent], directory: Path, *, segment_events: int = 10) -> BackedUp:
    """A backup of a log that is a list."""
    return await back_up(ListedLedger(events), directory, segment_events=segment_events)


async def all_of(ledger: Ledger) -> list[StoredEvent]:
    """Every event of a log."""
    return [event async for events in ledger.read() for event in events]


def kept_in(directory: Path) -> list[StoredEvent]:
    """Every event of a backup."""
    return [one.event for kept in read_backup(directory) for one in kept]


WAITS_TO_BE_KILLED = """
def told(*_, seen=[]):
    seen.append(1)
    print("on", flush=True)
    if len(seen) == given["lines"]:
        sys.stdin.read()
"""
"""A progress callback for a script: after the last line that somebody waits for it goes no further."""


async def killed_after(lines: int, script: str, given: dict[str, Any]) -> None:
    """Run a script in a process of its own, and kill -9 it once it has printed so many lines (WAITS_TO_BE_KILLED)."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        script,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=ENVIRONMENT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({**given, "lines": lines}).encode() + b"\n")
    await process.stdin.drain()
    for _ in range(lines):
        assert await process.stdout.readline(), "it was over before it could be killed"
    process.kill()
    assert await process.wait() == -9
