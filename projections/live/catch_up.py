"""Catch-up: a pipeline of three stages (read, decode, fold), each with its own thread, for a long piece of the log.

The first two are decoded_ahead.py beside this; here is the third.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ledger.archive.segments import Segment
from ledger.store.parked import NONE_PARKED, Parked
from ledger.stream import Log
from projections.archive.reading import Archive
from projections.engine.batch import Folded
from projections.engine.duckdb import checkpoint
from projections.engine.predecode import Ahead, fold_ahead
from projections.engine.view import View
from projections.fold_kit.workbench import Workbench
from projections.live.decoded_ahead import Batches, decoded_ahead

MOST_KEPT = 96 * 2**20
"""Bytes of what updates replaced that may be kept. DuckDB keeps all of it while a lane's transaction is open, and needs
24 KB a column for each 2,048 rows of which a statement updates one: more with each item of a log."""
Moved = Callable[[int, float], None]
"""Called with the position and the rate in events a second."""


async def catch_up(
    ledger: Log,
    view: View,
    to: int,
    progress: Moved = lambda _position, _rate: None,
    parked: Parked = NONE_PARKED,
    *,
    archive: Archive | None = None,
) -> int:
    """Fold everything up to position `to` and stop there; returns how many events were refused.

    What is in `archive` is read there. Raises LogGap, BrokerUnavailable, and UnfoldableEvent for an event that cannot
    be folded and is not in `parked`.
    """
    part = Segment(view.position + 1, to)
    async with decoded_ahead(ledger, view.instance.bench.keyring, part, parked, archive=archive) as batches:
        return await folded(batches, view, to, progress, parked)


async def folded(
    batches: Batches,
    view: View,
    to: int,
    progress: Moved,
    parked: Parked,
    *,
    checkpoint_every: int | None = None,
) -> int:
    """Fold batches up to position `to`; returns how many events were refused.

    A CHECKPOINT of the file is done after every `checkpoint_every` events; the file must have no readers then. Raises
    what `catch_up` raises.
    """
    started, first, refused = time.monotonic(), view.position, 0
    checkpointed, bench, loop = first, view.instance.bench, asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "view-writer") as writer:
        try:
            while (decoded := await batches.next()) is not None:
                done = await loop.run_in_executor(writer, _fold, bench, decoded, parked)
                view.instance.position = done.position
                refused += done.refused
                if checkpoint_every is not None and to > done.position >= checkpointed + checkpoint_every:
                    checkpointed = done.position
                    await loop.run_in_executor(writer, bench.settle)
                    await loop.run_in_executor(writer, checkpoint, bench.con)
                progress(done.position, (done.position - first) / max(time.monotonic() - started, 1e-9))
            await loop.run_in_executor(writer, bench.settle)
        finally:
            # The fold may be waiting for the vault, which answers on this loop: do not block it.
            await asyncio.to_thread(writer.shutdown)
    return refused


def _fold(bench: Workbench, decoded: Ahead, parked: Parked) -> Folded:
    """Fold a batch; settle the lanes where much is kept for them."""
    done = fold_ahead(bench, decoded, parked)
    if bench.has_lanes:
        ((kept,),) = bench.rows("SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'TRANSACTION'")
        if kept > MOST_KEPT:
            bench.settle()
    return done
