"""`make statements ARGS="--count 20000 --seed 7"`: generated statements against one node, every promise checked.

Exits with 1 where a view stood still, an answer had no code, or a replay differs; then the node's data is kept.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks.statements.campaign import run
from tests.journeys.running_node import running


def main() -> int:
    """Run the campaign and print what came of it; the exit code."""
    stated = argparse.ArgumentParser(prog="make statements", description=__doc__)
    stated.add_argument("--count", type=int, default=20_000, help="how many statements (20000)")
    stated.add_argument(
        "--seed", type=int, help="the same seed gives the same statements; by chance where none is given"
    )
    given = stated.parse_args()
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    directory = Path(tempfile.mkdtemp(prefix="kledger-statements-"))
    print(f"{given.count} statements, seed {seed}, below {directory}", flush=True)
    began = time.monotonic()
    with running(directory / "data", "--quack", "off") as node:
        told = asyncio.run(run(node, seed, given.count, tell=lambda line: print(line, flush=True)))
    for name, value in {
        "statements": told.statements,
        "bytes": told.bytes,
        "events in the log": told.events,
        "well-formed events that count": f"{told.counted} of {told.well_formed}",
        "answers by status": dict(sorted(told.answers.items())),
        "refused by code": dict(sorted(told.refused.items())),
        "reads": told.reads,
        "longest time without progress": f"{told.longest_still:.1f} s",
        "seconds": round(time.monotonic() - began, 1),
        "broken promises": len(told.broken),
    }.items():
        print(f"{name:30} {value}")
    for one in told.broken[:50]:
        print(f"  {one}")
    if not told.broken:
        shutil.rmtree(directory)
    return 1 if told.broken else 0


if __name__ == "__main__":
    sys.exit(main())
