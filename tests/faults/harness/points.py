"""Where is something killed, what brings the node there, and whom does it hit?

A victim may also be the disk, which is full then, and a segment of the archive, of which half is gone before a rebuild
reads it, whoever is killed meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.harness.halves import HALVES, NOBODY

WRITES, REBUILD, POISON, RESTART, SOON = "writes", "a rebuild", "a poison event", "a restart", "at a random time"
HALF = "half a segment"


@dataclass(frozen=True, slots=True)
class Point:
    """One kill: `process.step` is where it is triggered, `passage` at which time of getting there."""

    process: str
    step: str
    provoked_by: str
    victim: str
    passage: int = 1

    @property
    def name(self) -> str:
        return f"{self.process}.{self.step}"


# process, what provokes it, steps, victims, the latest passage
_STEPS = (
    (
        "node",
        WRITES,
        ("append.begun", "append.sent", "append.acknowledged", "fold.begun", "fold.done", "fold.before-commit"),
        ("self", "broker", "vectors", "all"),
        4,
    ),
    (
        "node",
        WRITES,
        ("fold.committed", "view.moving", "view.moved", "vectors.asked", "vectors.answered"),
        ("self", "broker", "vectors", "all"),
        3,
    ),
    ("node", WRITES, ("batch.sent",), ("self", "broker", "all"), 3),
    ("node", WRITES, ("checkpoint.begun", "checkpoint.done"), ("self", "broker", "vectors", "all"), 1),
    ("vectors", WRITES, ("upsert.begun", "upsert.done"), ("self", "broker", "node", "all"), 3),
    ("vectors", WRITES, ("close.begun", "close.done", "flush.begun"), ("self", "node", "all"), 1),
    ("vectors", WRITES, ("flush.flushed", "flush.done"), ("self", "broker", "node", "all"), 1),
    ("rebuild", REBUILD, ("fold.begun", "fold.before-commit", "fold.committed"), ("self", "broker", "all"), 1),
    ("node", REBUILD, ("swap.rebuilt", "swap.compared", "swap.pointed", "swap.done"), ("self", "broker", "all"), 1),
    ("node", POISON, ("park.begun", "park.decided"), ("self", "broker", "all"), 1),
    ("node", RESTART, ("start.broker", "start.view", "start.vectors"), ("self", "broker", "all"), 1),
    (
        "archive",
        WRITES,
        ("events.begun", "events.file", "events.signed", "synced", "events.written"),
        ("self", "node", "broker", "all"),
        2,
    ),
    ("archive", WRITES, ("columns.begun", "columns.files", "columns.signed", "columns.written"), ("self", "all"), 2),
    ("archive", WRITES, ("full.events", "full.columns"), ("disk",), 2),
    ("archive", HALF, tuple(f"half.{half}" for half in HALVES), (NOBODY, "self", "all"), 1),
    ("any", SOON, ("moment",), ("node", "broker", "vectors", "all"), 1),
)


def every_point(chance: random.Random) -> list[Point]:
    """Each step with each victim, once, with passages by chance, in an order by chance."""
    points = [
        Point(process, step, provoked_by, victim, chance.randint(1, latest))
        for process, provoked_by, steps, victims, latest in _STEPS
        for step in steps
        for victim in victims
    ]
    chance.shuffle(points)
    return points


def campaign(count: int, chance: random.Random) -> Iterator[Point]:
    """`count` points: all of them in turn, again and again with other passages."""
    while count > 0:
        points = every_point(chance)[:count]
        yield from points
        count -= len(points)
