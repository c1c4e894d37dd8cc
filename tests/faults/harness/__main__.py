"""`make faults ARGS="--points 200 --seed 7"`: many kills between any two steps, and what was left after each.

Exits with 1 where a promise was broken or a point was never reached; then the data of that log is kept to be looked at.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import structlog

from tests.faults.harness.campaign import Outcome, Tally, run
from tests.faults.harness.survival import survive


def main() -> int:
    """Run the campaign and print its table; the exit code."""
    stated = argparse.ArgumentParser(prog="make faults", description=__doc__)
    stated.add_argument("--points", type=int, default=200, help="how many kills (200)")
    stated.add_argument("--cluster", type=int, default=10_000, help="events appended while a cluster is killed (10000)")
    stated.add_argument("--seed", type=int, help="the same seed gives the same points; by chance where none is given")
    given = stated.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    directory = Path(tempfile.mkdtemp(prefix="kledger-faults-"))
    print(f"{given.points} points, seed {seed}, below {directory}", flush=True)
    began, shown = time.monotonic(), 0

    def tell(outcome: Outcome) -> None:
        nonlocal shown
        shown += 1
        point = outcome.point
        state = "BROKEN" if outcome.broken else "ok" if outcome.reached else "NOT REACHED"
        print(
            f"{shown:4} {point.name:26} {point.provoked_by:15} kills {point.victim:8} {outcome.seconds:5.1f} s "
            f"{outcome.events:6} events  {state}",
            flush=True,
        )
        for promise in outcome.broken:
            print(f"     {promise}", flush=True)

    tally = run(given.points, seed, directory, tell)
    summary(tally, time.monotonic() - began)
    survived = given.cluster == 0 or _survives(given.cluster, directory / "cluster")
    if tally.ok and survived:
        shutil.rmtree(directory)
    return 0 if tally.ok and survived else 1


def _survives(events: int, directory: Path) -> bool:
    """Three servers, of which the leader, a follower, and all three are killed; whether all was kept, once."""
    began = time.monotonic()
    told = survive(events, directory)
    print(f"\na cluster of three with two nodes, {told.kills} kills while {events:,} events were appended")
    for name, value in {**asdict(told), "seconds": round(time.monotonic() - began, 1)}.items():
        print(f"{name.replace('_', ' '):32} {value}")
    return told.ok


def summary(tally: Tally, seconds: float) -> None:
    """Print what it all came to."""
    broken = [promise for outcome in tally.outcomes for promise in outcome.broken]
    rows = {
        "points": len(tally.outcomes),
        "reached": sum(outcome.reached for outcome in tally.outcomes),
        "requests acknowledged": tally.acknowledged,
        "requests sent again": tally.repeated,
        "starts of a node": tally.starts,
        "acknowledged and lost": sum(promise.startswith("lost") for promise in broken),
        "applied twice": sum(promise.startswith("applied twice") for promise in broken),
        "view unlike its replay": sum("replay" in promise for promise in broken),
        "other broken promises": sum(
            not promise.startswith(("lost", "applied twice")) and "replay" not in promise for promise in broken
        ),
        "vectors compared with new ones": tally.vectors_compared,
        "seconds": round(seconds, 1),
        "seed": tally.seed,
    }
    print()
    for name, value in rows.items():
        print(f"{name:32} {value}")


if __name__ == "__main__":
    sys.exit(main())
