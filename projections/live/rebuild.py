"""Rebuild: folds the log from its start, up to any position, into a new view file while the live one serves reads.

It runs in a subprocess (ledger/broker/subprocess_job.py), apart from the node's interpreter and memory, and shares
nothing with the live view.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import structlog
import uvloop

from kledger.contract.errors import InvalidPayload
from ledger.archive.segments import Segment
from ledger.broker.access import BrokerAccess
from ledger.broker.subprocess_job import access_read, access_told, in_own_process, run_child
from ledger.event import JsonObject
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault_keyring import keyring_of
from ledger.progress import Progress, silent
from ledger.store.jetstream import JetStreamLedger
from ledger.store.parked import NONE_PARKED, Parked, read_told
from ledger.store.parked import as_json as decisions_as_json
from ledger.stream import Ledger, Log
from projections.archive.reading import Archive
from projections.engine.digest import digests, state_digest
from projections.engine.duckdb import checkpoint, open_new_view
from projections.engine.parking import ABOUT_THE_EVENT
from projections.engine.registry import LANES
from projections.engine.view import Instance, View
from projections.live.catch_up import folded
from projections.live.decoded_ahead import decoded_ahead
from projections.live.files import discard
from projections.live.more_memory import made_with_memory, read_with_memory

logger = structlog.get_logger(__name__)

MEMORY_LIMIT = 352_000_000
"""Bytes that DuckDB may take for a new file; more where its texts are too large for that."""
CHECKPOINT_EVERY = 350_000
"""Events between checkpoints of the new file. Without them, all that is committed stays in memory until the end; with
many, row groups that are not full are merged again and again."""

_FREED_PAGES_ARE_KEPT_MS = 10_000
"""How long Arrow keeps pages that it has freed: each batch takes as many again, and to have them anew costs 3 %."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Result of a rebuild: last position, number of events, speed, and digest."""

    position: int
    events: int
    refused: int
    seconds: float
    rate: float
    digest: str
    views: JsonObject
    """`rows` and `digest` of each relation that follows from the log."""
    archive: JsonObject = field(default_factory=dict)
    """`events` that were read from the archive, and what was `damaged` there; empty where only the log was read."""


async def rebuild_into(
    ledger: Ledger,
    path: Path,
    to: int | None = None,
    progress: Progress = silent,
    parked: Parked = NONE_PARKED,
    *,
    keyring: Keyring | None = None,
    archive: Archive | None = None,
    recall_days: int | None = None,
) -> Rebuilt:
    """Fold the log from its start up to position `to` (None: the head as it is now) into a new file.

    What `archive` has is read there instead of in the log. The file keeps the detail of recalls for `recall_days`.

    `progress` is called with position, last position and events a second. Raises InvalidPayload when the file exists
    or `to` is beyond the head, LogGap, BrokerUnavailable, and UnfoldableEvent for an event that cannot be folded and
    is not in `parked`; then the unfinished file is removed.
    """
    head = (await ledger.head()).position
    last = head if to is None else to
    if last > head:
        raise InvalidPayload(f"position {last} is beyond the head of the log, which is {head}", errors=[])
    started = time.monotonic()
    whole = folded_into(
        ledger,
        path,
        last,
        lambda at, rate: progress(at, last, rate),
        parked,
        keyring=keyring,
        archive=archive,
        recall_days=recall_days,
    )
    async with whole as (con, refused):
        seconds = time.monotonic() - started
        parts = read_with_memory(con, digests)
    views = {name: asdict(part) for name, part in parts.items()}
    read = {} if archive is None else {"events": archive.events, "damaged": archive.damaged}
    return Rebuilt(last, last, refused, seconds, last / max(seconds, 1e-9), state_digest(parts), views, read)


@asynccontextmanager
async def folded_into(
    log: Log,
    path: Path,
    last: int,
    progress: Callable[[int, float], None],
    parked: Parked = NONE_PARKED,
    *,
    keyring: Keyring | None = None,
    archive: Archive | None = None,
    recall_days: int | None = None,
) -> AsyncIterator[tuple[duckdb.DuckDBPyConnection, int]]:
    """A new view file with the log up to position `last`, and how many events were refused.

    It is whole and closed when the block succeeds, and removed where anything fails. Raises as rebuild_into does.
    """
    keyring = keyring or Keyring()
    if pa.default_memory_pool().backend_name == "jemalloc":  # as in a process of its own
        pa.jemalloc_set_decay_ms(_FREED_PAGES_ARE_KEPT_MS)

    async def whole(memory_limit: int, *, in_lanes: bool) -> tuple[View, int]:
        async with decoded_ahead(log, keyring, Segment(1, last), parked, archive=archive) as batches:
            # The tables are made beside the first batch, which a thread decodes meanwhile.
            view = View(Instance(_new_view(path, memory_limit, recall_days), path, keyring))
            bench = view.instance.bench
            with _discarded_if_failing(view, path):
                if in_lanes:
                    bench.open_lanes(LANES)
                try:
                    refused = await folded(batches, view, last, progress, parked, checkpoint_every=CHECKPOINT_EVERY)
                except ABOUT_THE_EVENT as error:
                    if bench.torn:
                        raise _Torn from error
                    raise
                checkpoint(view.instance.con)
                return view, refused

    async def made(memory_limit: int) -> tuple[View, int]:
        if archive is not None:
            archive.begin_anew()
        try:
            return await whole(memory_limit, in_lanes=True)
        except _Torn as error:  # which event it was is found where batches are folded one after the other
            logger.warning("the log is folded once more, without lanes", error=str(error.__cause__))
        if archive is not None:
            archive.begin_anew()
        return await whole(memory_limit, in_lanes=False)

    view, refused = await made_with_memory(made, MEMORY_LIMIT)
    with _discarded_if_failing(view, path):
        view.instance.con.execute(f"SET threads = {os.cpu_count() or 1}")  # for the digest: nothing else runs
        yield view.instance.con, refused
    view.close()


class _Torn(Exception):
    """A batch that its lanes had begun could not be folded."""


@contextmanager
def _discarded_if_failing(view: View, path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        view.close()
        discard(path)
        raise


def _new_view(path: Path, memory_limit: int, recall_days: int | None) -> duckdb.DuckDBPyConnection:
    if path.exists():
        raise InvalidPayload(f"{path} is there already: choose a file that does not exist", errors=[])
    try:
        return open_new_view(path, memory_limit=f"{memory_limit} bytes", recall_days=recall_days)
    except BaseException:
        discard(path)
        raise


async def position_at(ledger: Ledger, moment: datetime) -> int:
    """The position before the first event that the log stored after `moment`, to the microsecond as the views tell it.

    Reads the log.
    """
    limit, position = int(moment.timestamp() * 1_000_000), 0
    async with contextlib.aclosing(ledger.read(1, batch=10_000)) as batches:
        async for events in batches:
            for event in events:
                if event.stored_ns // 1_000 > limit:
                    return position
                position = event.position
    return position


async def rebuild_in_own_process(
    access: BrokerAccess,
    path: Path,
    to: int | None,
    progress: Progress = silent,
    parked: Parked = NONE_PARKED,
    *,
    master: bytes = b"",
    data: Path | None = None,
    recall_days: int | None = None,
) -> Rebuilt:
    """rebuild_into, in a subprocess. Raises what rebuild_into raises; cancelling ends the process.

    The `master` key lets it read keys from the vault. `data` is the node's directory, whose archive is read; without
    it nothing but the log is.
    """
    order: JsonObject = {
        "broker": access_told(access, "reader", *(("node",) if master else ())),
        "path": str(path),
        "to": to,
        "parked": decisions_as_json(parked.values()),
        "master": master.hex(),
        "archive": str(data) if data is not None else None,
        "recall_days": recall_days,
    }
    result = await in_own_process("projections.live.rebuild", order, progress)
    return Rebuilt(**result)


async def _rebuild(order: JsonObject, progress: Progress) -> JsonObject:
    async with contextlib.AsyncExitStack() as stack:
        access = access_read(order["broker"])
        ledger = await JetStreamLedger.connect(access, role="reader", name="kledger-rebuild")
        stack.push_async_callback(ledger.close)
        master = bytes.fromhex(order["master"])
        keyring = await stack.enter_async_context(keyring_of(access, master, "kledger-rebuild"))
        path, parked = Path(order["path"]), read_told(order["parked"])
        archive = Archive.of_node(Path(order["archive"])) if order["archive"] else None
        rebuilt = await rebuild_into(
            ledger,
            path,
            order["to"],
            progress,
            parked,
            keyring=keyring,
            archive=archive,
            recall_days=order["recall_days"],
        )
        return asdict(rebuilt)


if __name__ == "__main__":
    run_child(_rebuild, uvloop.run)
