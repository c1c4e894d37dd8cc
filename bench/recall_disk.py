"""Disk of reading: what a million recorded searches keep, by part: `python -m bench.recall_disk [--page]`.

Recalls as a node states them, of five items each, for the actors, traces and messages of 500 callers, half of them
persons, whose questions are sealed. Each part is beside the bytes of the log. The views are those of a rebuild, whose
file is packed; a live one writes the same into its write-ahead log first, of at most 200,000 events. The last row is
the sum: gigabytes for a million searches. `--page` writes the rows into the page that tells of them, so that no figure
there is written by hand.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import uvloop

from bench.mixed import owners
from bench.rebuild import MASTER, append, archive, broker, bytes_in, nobody
from bench.words import Words
from ledger.broker.access import BrokerAccess
from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.recall import Ranking, RecallServed, ServedItem
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault_jetstream import JetStreamVault
from ledger.store.jetstream import JetStreamLedger
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view, transaction
from projections.fold_kit.workbench import Workbench
from projections.live.rebuild import rebuild_in_own_process
from projections.views.recalls import retention

SEARCHES = 100_000
ITEMS = 10_000
SERVED = 5
QUERY = 9
A_TRACE = 4
"""Searches in one trace."""
TOGETHER = 20
"""Recalls that a node folds at once while few search: they wait for each other for two seconds."""
LIVE = 2_000
MILLION = 1_000_000
DAY_NS = 86_400 * 10**9
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "observe-a-node.md"
BEGIN, END = "<!-- python -m bench.recall_disk --page -->\n", "<!-- end -->\n"


def searches(count: int, seed: int = 1) -> Iterator[NewEvent]:
    """`count` recalls, with ids, relevance and match of the lengths that a search gives them."""
    random, words = Random(seed), Words(seed)
    callers = owners()
    for number in range(count):
        trace = number // A_TRACE
        caller = callers[trace % len(callers)]
        best = 0.8 + random.random() / 2
        items = [
            ServedItem(
                id=f"knowledge-20260305-{random.randrange(ITEMS):08x}", version=1, relevance=round(best / rank, 6)
            )
            for rank in range(1, SERVED + 1)
        ]
        ranking = Ranking(policy="ec3818f70cd6", matches=[round(random.random(), 4) for _ in items])
        fact = RecallServed(
            query=words.text(QUERY),
            visible_scopes=[caller, "public"],
            items=items,
            view_position=number,
            ranking=ranking,
        )
        lineage = Lineage(f"{Random(trace).getrandbits(128):032x}", f"msg-{number:08d}")
        yield NewEvent(fact, f"recall-{random.getrandbits(128):032x}", caller, lineage=lineage)


async def measure(count: int) -> list[dict[str, Any]]:
    """Append, fold, archive, reduce. Returns the rows."""
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kledger-bench-")))
        access = await stack.enter_async_context(broker(directory / "broker"))
        await append(access, searches(count), count, nobody)
        ledger = await JetStreamLedger.connect(access)
        stack.push_async_callback(ledger.close)
        said = (await ledger.status()).bytes / count
        log = bytes_in(directory / "broker") / count
        view = directory / "view.duckdb"
        empty = _used(open_view(directory / "empty.duckdb"))
        await rebuild_in_own_process(access, view, None, master=MASTER)
        views = (_used(duckdb.connect(str(view))) - empty) / count
        past = (_reduced(view) - empty) / count
        live = await _live(access, directory / "live.duckdb")
        await archive(access, directory / "data", count, MASTER)
        archived = bytes_in(directory / "data" / "archive") / count
        signed = bytes_in(directory / "data" / "chain") / count
    parts = {
        "log": (log, f"{said:,.0f} of them are messages; half of the questions are sealed"),
        "views": (views, "with their detail, packed"),
        "views, until the next checkpoint": (
            live,
            f"write-ahead log, {TOGETHER} recalls at once; of 200,000 events at most",
        ),
        "views, past the retention": (past, "KLEDGER_RECALL_DETAIL_DAYS: who, when, which items, which trace"),
        "archive": (archived, "of what is signed, in whole segments"),
        "chain": (signed, "leaves and checkpoints"),
    }
    rows = [_row(f"a recorded search, {part}", each, log, "bytes", note) for part, (each, note) in parts.items()]
    whole = (log + views + archived + signed) * MILLION / 1e9
    rows.append(_row("a million recorded searches", whole, log * MILLION / 1e9, "GB", "log, views, archive and chain"))
    return rows


def _row(row: str, ours: float, log: float, unit: str, note: str) -> dict[str, Any]:
    told = {"row": row, "ours": ours, "raw": log, "unit": unit, "ratio": ours / log, "target": None}
    return told | {"note": f"beside the log; {note}"}


def _used(con: duckdb.DuckDBPyConnection) -> int:
    """The bytes of a view file that are in use after a checkpoint; closes it."""
    with con:
        con.execute("CHECKPOINT")
        ((size, used),) = con.execute("SELECT block_size, used_blocks FROM pragma_database_size()").fetchall()
    return int(size) * int(used)


def _reduced(view: Path) -> int:
    """The same of a view whose recalls are all past their retention; changes the file."""
    con = open_view(view)
    bench = Workbench(con)
    with transaction(con):
        bench.run("UPDATE recall_retention SET days = 1")
        retention.fold(bench, *2 * [time.time_ns() + 3 * DAY_NS])
    return _used(con)


async def _live(access: BrokerAccess, view: Path) -> float:
    """Bytes of the write-ahead log a recall, folded as a node folds them while they come."""
    ledger = await JetStreamLedger.connect(access)
    vault = await JetStreamVault.open(access, MASTER)
    try:
        events: list[StoredEvent] = []
        async with contextlib.aclosing(ledger.read(1, batch=LIVE)) as batches:
            async for part in batches:
                events += part
                if len(events) >= LIVE:
                    break
        keyring = Keyring.over(vault, asyncio.get_running_loop())
        return await asyncio.to_thread(_written, view, events[:LIVE], keyring)
    finally:
        await vault.close()
        await ledger.close()


def _written(view: Path, events: list[StoredEvent], keyring: Keyring) -> float:
    bench = Workbench(open_view(view), keyring)
    bench.run("CHECKPOINT")
    ahead = iter(events)
    while part := list(islice(ahead, TOGETHER)):
        fold_batch(bench, part)
    written = view.with_name(f"{view.name}.wal").stat().st_size / len(events)
    bench.close()
    return written


def run(count: int = SEARCHES) -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(count))


def write_page(rows: list[dict[str, Any]]) -> None:
    """Write the rows into PAGE, between its marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    lines = ["| what | size | |", "|---|---|---|"]
    for row in rows:
        size = f"{row['ours']:,.0f} bytes" if row["unit"] == "bytes" else f"{row['ours']:.1f} {row['unit']}"
        lines.append(f"| {row['row']} | {size} | {row['note'].removeprefix('beside the log; ')} |")
    PAGE.write_text("".join([before, BEGIN, *(f"{line}\n" for line in lines), END, after]), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.recall_disk", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--searches", type=int, default=SEARCHES)
    parser.add_argument("--page", action="store_true", help="write the rows into the documentation")
    options = parser.parse_args()
    measured = run(options.searches)
    if options.page:
        write_page(measured)
    for line in measured:
        print(f"{line['row']:54} {line['ours']:10.3f} {line['unit']:6} {line['ratio']:.3f}  {line['note']}")
