"""How is a node taken through many kills? One point after the other; after each, every promise is checked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from kledger.contract.errors import LedgerError, NodeUnreachable
from ledger.broker.server import EmbeddedServer
from tests.faults import poison
from tests.faults.crash_points import VIOLATION
from tests.faults.harness.checks import MASTER_KEY, broken_promises, vectors_are_as_fed_anew
from tests.faults.harness.halves import JOBS, NOBODY, halve, job_result, until_whole, wrong_with
from tests.faults.harness.points import HALF, POISON, REBUILD, RESTART, SOON, Point, campaign
from tests.faults.harness.workload import Workload
from tests.journeys import running_node
from tests.journeys.running_node import ROOT, RunningNode, caught_up, head, running

INJECT = Path(__file__).parents[1] / "inject"
POINTS_A_LOG = 20
"""After so many points the log begins anew, so that replaying it stays short."""
ARCHIVE_EVENTS = 30
"""Events in a segment of the archive, so that there are many."""
REACHED_WITHIN = 20.0
ENDS_WITHIN = 20.0
"""Seconds in which a process that was killed is gone, however much memory it gives back."""
PATIENCE = 300.0
"""Seconds for what always comes, however busy the machine is."""


@dataclass
class Outcome:
    """What one point came to; `broken` is empty where every promise was kept."""

    point: Point
    reached: bool
    seconds: float
    broken: list[str]
    events: int = 0


@dataclass
class Tally:
    """What a whole campaign came to."""

    seed: int
    outcomes: list[Outcome] = field(default_factory=list)
    acknowledged: int = 0
    repeated: int = 0
    starts: int = 0
    vectors_compared: int = 0

    @property
    def ok(self) -> bool:
        return all(outcome.reached and not outcome.broken for outcome in self.outcomes)


class Life:
    """A node on one data directory, started again whenever it died, and what its clients said to it."""

    def __init__(self, directory: Path, chance: random.Random, tally: Tally) -> None:
        self.armed, self.data = directory / "armed", directory / "data"
        self.armed.mkdir(parents=True)
        self.work, self.tally, self.poisoned = Workload(chance), tally, 0
        self.broken: list[str] = []
        """What was seen to be wrong while the point was provoked."""
        self._chance, self._stack = chance, ExitStack()
        self._node: RunningNode | None = None
        self.active = directory / "poison"
        self.active.touch()

    @property
    def node(self) -> RunningNode:
        """The node, started where none runs; a start that is killed is tried again."""
        while self._node is None or self._node.process.poll() is not None:
            self._stack.close()
            self.tally.starts += 1
            env = {
                "PYTHONPATH": str(INJECT),
                "FAULT_ROOT": str(ROOT),
                "FAULT_ARMED": str(self.armed),
                "FAULT_DATA": str(self.data),
                "FAULT_POISON": str(self.active),
                "KLEDGER_ARCHIVE_EVENTS": str(ARCHIVE_EVENTS),
                "KLEDGER_LIMIT_ANALYST_SECONDS": "600",  # of the digests, on a machine that is busy
                "KLEDGER_MASTER_KEY": MASTER_KEY,
                "FAULT_SEED": str(self._chance.randrange(2**32)),
            }
            armed = list(self.armed.glob("node.start.*"))
            try:
                self._node = self._stack.enter_context(running(self.data, env=env))
            except AssertionError:
                if not armed or armed[0].exists():  # else it was killed as it started, as it should be
                    raise
        return self._node

    def send_all(self) -> None:
        """Send until everything is acknowledged, through whatever happens to the node."""
        deadline = time.monotonic() + PATIENCE
        while not self.work.send(self.node.url):
            assert time.monotonic() < deadline, f"not acknowledged: {self.node.said()}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until the node is well and has folded everything, starting it where it died."""
        for tries_left in (2, 1, 0):
            try:
                with self.node.client(retries=0, timeout=PATIENCE) as client:
                    caught_up(client)
                    return
            except Exception as error:
                if isinstance(error, NodeUnreachable) and self._node is not None:
                    # A process that was killed closes its sockets before it has ended: it would be asked again.
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._node.process.wait(ENDS_WITHIN)
                if self._node is not None and self._node.process.poll() is None:
                    self._node.process.send_signal(signal.SIGUSR1)  # what it waits for stands in its log
                if not tries_left:
                    raise

    def end(self) -> None:
        """Stop the node as a person would; it has to end well."""
        self._stack.close()

    def abandon(self) -> None:
        """Kill the node, however it is."""
        if self._node is not None:
            self._node.process.kill()
            self._node.process.wait()
        self._stack.close()


def run(count: int, seed: int, directory: Path, told: Callable[[Outcome], None] = lambda _: None) -> Tally:
    """Take nodes through `count` points below an empty directory, which is removed where all went well."""
    chance, tally = random.Random(seed), Tally(seed)
    poison.install_here()
    running_node.STARTS_WITHIN = PATIENCE
    points = list(campaign(count, chance))
    for first in range(0, count, POINTS_A_LOG):
        life = Life(directory / f"log-{first}", chance, tally)
        try:
            life.work.begin()
            life.send_all()
            life.settle()
            for point in points[first : first + POINTS_A_LOG]:
                tally.outcomes.append(_outcome(life, point, chance))
                told(tally.outcomes[-1])
                if tally.outcomes[-1].broken:
                    break
            last = _last_position(life)
        except BaseException:
            life.abandon()  # an armed point may still kill it: how it ends would hide what went wrong
            raise
        life.end()  # with exit code 0, else this raises
        tally.acknowledged += life.work.sent
        tally.repeated += life.work.repeated
        asyncio.run(_compare_vectors(life, last, tally))
        if tally.ok:
            shutil.rmtree(directory / f"log-{first}")
    return tally


def _outcome(life: Life, point: Point, chance: random.Random) -> Outcome:
    began = time.monotonic()
    reached = _strike(life, point, chance)
    life.send_all()
    life.settle()
    for left in life.armed.glob("*.*"):
        left.unlink()
    with life.node.client(timeout=PATIENCE) as client:
        broken = life.broken + broken_promises(client, life.node.access, life.work, life.poisoned, life.data)
        events = head(client)
    if (life.armed / VIOLATION).exists():
        broken.append((life.armed / VIOLATION).read_text())
    return Outcome(point, reached, time.monotonic() - began, broken, events)


def _strike(life: Life, point: Point, chance: random.Random) -> bool:
    """Arm a point and bring the node there; whether it came."""
    if point.provoked_by == SOON:
        return _strike_soon(life, point, chance)
    if point.provoked_by == HALF:
        return _strike_half(life, point, chance)
    armed = life.armed / point.name
    node = life.node
    armed.with_name("draft").write_text(f"{point.victim} {point.passage}")
    armed.with_name("draft").rename(armed)
    deadline = time.monotonic() + REACHED_WITHIN
    if point.provoked_by == RESTART:
        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
    elif point.provoked_by == POISON:
        life.poisoned += 1
        life.work.poison()
    while armed.exists() and time.monotonic() < deadline:
        life.work.write(chance.randint(2, 5))
        if point.provoked_by == REBUILD:
            with contextlib.suppress(Exception), life.node.client(retries=0, timeout=PATIENCE) as client:
                client.wait_job(client.start_job("rebuild")["id"], timeout=20)
        life.work.send(life.node.url)
    return not armed.exists()


def _strike_soon(life: Life, point: Point, chance: random.Random) -> bool:
    """Kill in the midst of writes, at no particular step."""
    node = life.node
    life.work.write(8)
    pids = {"node": [node.process.pid], "broker": [node.broker], "vectors": [node.vectors]}
    pids["all"] = [*pids["broker"], *pids["vectors"], *pids["node"]]
    before = life.work.sent

    def strike() -> None:
        deadline = time.monotonic() + 2
        while life.work.sent < before + 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(chance.random() * 0.03)
        for pid in pids[point.victim]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    life.work.send(node.url)
    striking.join()
    if point.victim in ("node", "all"):
        node.process.wait(PATIENCE)
    return True


def _strike_half(life: Life, point: Point, chance: random.Random) -> bool:
    """Take away half of a segment at rest, have it read, and kill meanwhile; true once the archive is whole again."""

    def at() -> int:
        with life.node.client(timeout=PATIENCE) as client:
            return head(client)

    while at() < 2 * ARCHIVE_EVENTS:
        life.work.write(4)
        life.send_all()
    life.settle()
    if not until_whole(life.data, at, ARCHIVE_EVENTS):
        return False
    segment, named = halve(life.data, point.step.removeprefix("half."), chance)
    job, into = chance.choice(JOBS), life.data.parent / "replayed.duckdb"
    if point.victim != NOBODY:
        (life.armed / "rebuild.fold.begun").write_text(f"{point.victim} 1")
        with contextlib.suppress(LedgerError), life.node.client(retries=0, timeout=PATIENCE) as client:
            job_result(client, job, into)
    life.settle()
    with life.node.client(timeout=PATIENCE) as client:
        result = job_result(client, job, into)
    # A node that starts may make it anew before anybody reads it.
    life.broken += wrong_with(result, segment, None if point.victim == "all" else named)
    more = at() + ARCHIVE_EVENTS * (not named)  # columns that nobody missed are made with the next segment
    while at() < more:
        life.work.write(4)
        life.send_all()
    return until_whole(life.data, at, ARCHIVE_EVENTS) and not (life.armed / "rebuild.fold.begun").exists()


def _last_position(life: Life) -> int:
    with life.node.client(timeout=PATIENCE) as client:
        return head(client)


async def _compare_vectors(life: Life, position: int, tally: Tally) -> None:
    server = EmbeddedServer(life.data / "broker")
    access = await server.start()
    try:
        if not await vectors_are_as_fed_anew(access, life.data / "vectors", position):
            tally.outcomes[-1].broken.append("the vectors are not what feeding the whole view anew gives")
        tally.vectors_compared += 1
    finally:
        await server.stop()
