"""Folds logs on every road in a process of its own, and prints what became of them and what its clocks say.

The logs are pickled in the file that is named. Who starts it may shift its clock (tests/processes/shifted.py).
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from ledger.event import StoredEvent
from projections.engine import batch
from projections.engine.batch import fold_batch
from projections.engine.digest import state_digest
from projections.fold_kit.workbench import Workbench
from tests.projections.histories import new_view, rows, state, view_of

Log = Sequence[StoredEvent]
ASKED = {
    "refused": "SELECT position, code, reason FROM refused_events ORDER BY position",
    "lives": "SELECT id, status, lifetime, epoch_us(expires_at), recalls FROM short_memories ORDER BY ALL",
    "recalls": "SELECT position, item_id, epoch_us(time), counted_as FROM memory_recalls ORDER BY ALL",
    "memories": "SELECT org, id, layer, status, version FROM memory_items ORDER BY ALL",
}


def one_by_one(log: Log) -> Workbench:
    """Live: each event as it comes."""
    bench = new_view()
    for event in log:
        fold_batch(bench, [event])
    return bench


def twice(log: Log) -> Workbench:
    """All of it, its second half again, and all of it again."""
    bench = view_of(log)
    for start in (len(log) // 2, 0):
        fold_batch(bench, list(log[start:]))
    return bench


WAYS: dict[str, Callable[[Log], Workbench]] = {
    "a rebuild": view_of,
    "in parts": lambda log: view_of(log, range(0, len(log), max(3, len(log) // 6))),
    "live": one_by_one,
    "delivered twice": twice,
}
ROADS = {"small batches, by the models": 256, "large batches, by SQL": 0}
# One event is no large batch: to have SQL take each by itself is a fifth of a second for each.
TAKEN = [(road, way) for road in ROADS for way in WAYS if way != "live" or ROADS[road]]


def outcome(bench: Workbench) -> dict[str, Any]:
    """What a log came to: the digest of all, and of each relation, and the rows that say what was decided."""
    parts = state(bench)
    return {
        "digest": state_digest(parts),
        "relations": {name: part.digest for name, part in parts.items()},
        **{name: rows(bench.con, query) for name, query in ASKED.items()},
    }


def outcomes(log: Log) -> Iterator[tuple[str, dict[str, Any]]]:
    for road, way in TAKEN:
        batch.SMALL = ROADS[road]
        yield f"{way}, {road}", outcome(WAYS[way](log))


def main(file: Path) -> None:
    logs: list[Log] = pickle.loads(file.read_bytes())
    ((by_duckdb,),) = rows(new_view().con, "SELECT epoch_us(now())")
    said = {
        "clocks": [datetime.now(UTC).timestamp(), by_duckdb / 1e6],
        "logs": [dict(outcomes(log)) for log in logs],
    }
    sys.stdout.buffer.write(orjson.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
