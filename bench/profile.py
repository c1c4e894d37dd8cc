"""Rebuild profile: where the time goes, reading, decoding and folding one after the other, statement by statement."""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import pyarrow as pa
import uvloop

from bench.corpus import history
from bench.rebuild import append, broker
from ledger.store.jetstream import JetStreamLedger
from ledger.store.parked import NONE_PARKED
from projections.engine.batch import fold_decoded, ready
from projections.engine.decode import decode
from projections.engine.digest import digests
from projections.engine.duckdb import open_new_view
from projections.engine.view import Instance
from projections.live.rebuild import MEMORY_LIMIT

BATCH = 32_768
# The gate's queries; the Python before the first "load accepted_…" is its loop over the events.
Result = TypeVar("Result")
GATE = ("SELECT … FROM events", "SELECT … FROM event_keys", "SELECT … FROM knowledge_state")


@dataclass(slots=True)
class Spent:
    """Time of one kind of statement: inside DuckDB, and in the Python before it."""

    calls: int = 0
    inside: float = 0.0
    before: float = 0.0


@dataclass
class TimedConnection:
    """The part of a DuckDB connection that the folds use, which measures the time of each kind of statement."""

    con: duckdb.DuckDBPyConnection
    spent: dict[str, Spent] = field(default_factory=dict)
    _kind: str = ""
    _left: float = 0.0
    _prepared: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Start a measurement: time before this call belongs to no statement."""
        self._left = time.perf_counter()

    def execute(self, statement: str, *parameters: Any) -> TimedConnection:
        self._timed(self._kind_of(statement), lambda: self.con.execute(statement, *parameters))
        return self

    def executemany(self, statement: str, parameters: Any) -> TimedConnection:
        self._timed(self._kind_of(statement), lambda: self.con.executemany(statement, parameters))
        return self

    def close(self) -> None:
        self.con.close()

    def fetchall(self) -> list[Any]:
        return self._timed(self._kind, self.con.fetchall, calls=0)

    def to_arrow_table(self) -> pa.Table:
        return self._timed(self._kind, self.con.to_arrow_table, calls=0)

    def register(self, name: str, value: object) -> None:
        self._timed(f"load {name.removeprefix('loaded_')}", lambda: self.con.register(name, value))

    def unregister(self, name: str) -> None:
        self._timed(f"load {name.removeprefix('loaded_')}", lambda: self.con.unregister(name), calls=0)

    def _timed(self, kind: str, work: Callable[[], Result], calls: int = 1) -> Result:
        spent = self.spent.setdefault(kind, Spent())
        began = time.perf_counter()
        spent.before += began - self._left
        try:
            return work()
        finally:
            self._left = time.perf_counter()
            spent.calls += calls
            spent.inside += self._left - began
            self._kind = kind

    def _kind_of(self, statement: str) -> str:
        prepared = re.match(r"\s*PREPARE (\w+) AS (.*)", statement, re.DOTALL)
        if prepared:
            self._prepared[prepared[1]] = self._kind_of(prepared[2])
            return self._prepared[prepared[1]]
        executed = re.match(r"\s*(?:EXECUTE|DEALLOCATE) (\w+)", statement)
        if executed:
            return self._prepared[executed[1]]
        loaded = re.search(r"FROM loaded_(\w+)$", statement)
        if loaded:
            return f"load {loaded[1]}"
        changed = re.match(r"\s*(INSERT INTO|UPDATE|DELETE FROM) (\w+)", statement)
        if changed:
            return " ".join(changed.groups())
        source = re.search(r"\bFROM (\w+)", statement)
        return f"SELECT … FROM {source[1]}" if source else statement.split(maxsplit=1)[0]


async def profile(events: int) -> None:
    """Print the time profile of one rebuild, with reading and folding one after the other in this process."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        async with broker(Path(directory) / "broker") as access:
            await append(access, history(events), events)
            ledger = await JetStreamLedger.connect(access, role="reader")
            instance = Instance(open_new_view(Path(directory) / "rebuilt.duckdb", memory_limit=f"{MEMORY_LIMIT} bytes"))
            timed = TimedConnection(instance.con)
            instance.bench.con = cast(duckdb.DuckDBPyConnection, timed)
            try:
                stages = await _stages(ledger, instance, timed)
            finally:
                await ledger.close()
                instance.close()
    _print_profile(events, stages, timed.spent)


async def _stages(ledger: JetStreamLedger, instance: Instance, timed: TimedConnection) -> dict[str, float]:
    stages = dict.fromkeys(("read", "decode", "fold", "final checkpoint", "digest"), 0.0)
    began, processor = time.perf_counter(), time.process_time()

    def lap(stage: str) -> None:
        nonlocal began
        now = time.perf_counter()
        stages[stage] += now - began
        began = now

    async for batch in ledger.read(1, batch=BATCH):
        lap("read")
        decoded = decode(instance.bench.parser, ready(instance.bench.keyring, batch, NONE_PARKED))
        lap("decode")
        timed.begin()
        fold_decoded(instance.bench, decoded)
        lap("fold")
    lap("read")
    instance.con.execute("CHECKPOINT")
    lap("final checkpoint")
    stages["processor time until here"] = time.process_time() - processor
    digests(instance.con)
    lap("digest")
    return stages


def _print_profile(events: int, stages: dict[str, float], spent: dict[str, Spent]) -> None:
    gate = [spent[kind] for kind in GATE if kind in spent]
    inside, before = sum(each.inside for each in spent.values()), sum(each.before for each in spent.values())
    lines = {
        "read": stages["read"],
        "decode": stages["decode"],
        "fold": stages["fold"],
        "  in DuckDB": inside,
        "    of it commit": spent["COMMIT"].inside,
        "    of it the gate's": sum(each.inside for each in gate),
        "  in Python": before,
        "    of it up to the gate's verdicts": sum(
            each.before for kind, each in spent.items() if kind.startswith("load accepted")
        ),
        "final checkpoint": stages["final checkpoint"],
        "digest (not part of the rate)": stages["digest"],
        "processor time, without digest": stages["processor time until here"],
    }
    whole = stages["read"] + stages["decode"] + stages["fold"] + stages["final checkpoint"]
    print(f"{events:,} events, one stage after the other: {whole:.2f} s, {events / whole:,.0f} events/s")
    for name, seconds in lines.items():
        print(f"{name:<34} {seconds:8.3f} s {seconds / whole:7.1%} {seconds / events * 1e6:8.2f} us/event")
    print(f"\n{'statement':<44} {'calls':>6} {'in DuckDB':>10} {'Python before':>14}")
    for kind, each in sorted(spent.items(), key=lambda item: -item[1].inside - item[1].before):
        print(f"{kind[:44]:<44} {each.calls:>6} {each.inside:>9.3f}s {each.before:>13.3f}s")


def main() -> None:
    """Profile with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=60_000)
    uvloop.run(profile(parser.parse_args().events))


if __name__ == "__main__":
    main()
