"""Waiting in tests for what has to come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PATIENCE = 300.0
"""Seconds. Far longer than a machine takes that is busy with other work: who waits in vain has found a defect."""


async def comes_true(holds: Callable[[], object]) -> None:
    """Return once it holds. For what notifies nobody: another process, a state that a task sets."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  # what is waited for tells nobody
            await asyncio.sleep(0.01)
