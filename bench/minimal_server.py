"""Runs a minimal server of the benchmarks (minimal_search.py, minimal_publisher.py) in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.visible import ROOT, environment


@asynccontextmanager
async def minimal_server(name: str, *arguments: Path) -> AsyncIterator[str]:
    """The module of this name, which prints its port; its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"bench.{name}", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    )
    try:
        assert process.stdout is not None  # it is a pipe
        yield f"127.0.0.1:{int(await process.stdout.readline())}"
    finally:
        process.terminate()
        await process.wait()
