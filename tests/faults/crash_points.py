"""Where may a process die? Between any two steps: the product's own functions, wrapped from outside, are the steps.

A point is armed by a file `<process>.<point>` in the folder FAULT_ARMED, with whom to kill and at which passage:
`node 3`. Who reaches it that often removes the file and sends SIGKILL; where the victim is the `disk`, it goes on with
room for a few hundred bytes in each file. The product knows nothing of this.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import functools
import inspect
import os
import random
import resource
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

ARMED = Path(os.environ.get("FAULT_ARMED", "."))
VIOLATION = "violation"
"""A file of this name in the folder says which law a fold broke."""


def install(argv: list[str]) -> None:
    """Put the points of this process in place; `argv` says which it is. SIGUSR1 has it say what it waits for."""
    signal.signal(signal.SIGUSR1, lambda *_: _tell())
    if "projections.vectors.process" in argv:
        _in_vectors(_Points("vectors"))
    elif "projections.live.rebuild" in argv:
        _in_folds(_Points("rebuild"))
    elif "projections.archive.process" in argv:
        _in_the_archive(_Points("archive"))
    else:
        points = _Points("node")
        _in_folds(points)
        _in_appends(points)
        _in_the_node(points)
        _in_models(points)
        _deliver_badly(random.Random(int(os.environ.get("FAULT_SEED", "0"))))


class _Points:
    def __init__(self, process: str) -> None:
        self._process = process

    def reached(self, point: str) -> None:
        file = ARMED / f"{self._process}.{point}"
        try:
            victim, passage = file.read_text().split()
        except (FileNotFoundError, ValueError):
            return
        if int(passage) > 1:
            with contextlib.suppress(FileNotFoundError):
                file.write_text(f"{victim} {int(passage) - 1}")
            return
        with contextlib.suppress(FileNotFoundError):
            file.unlink()
            if victim == "disk":
                _leave_no_room()
            else:
                _kill(victim, self._process)

    def around(self, owner: Any, name: str, *, before: str | None = None, after: str | None = None) -> None:
        """Make `owner.name` pass points as it begins and as it has ended well."""
        inner = getattr(owner, name)

        if inspect.iscoroutinefunction(inner):

            @functools.wraps(inner)
            async def passing(*args: Any, **kwargs: Any) -> Any:
                if before:
                    self.reached(before)
                result = await inner(*args, **kwargs)
                if after:
                    self.reached(after)
                return result
        else:

            @functools.wraps(inner)
            def passing(*args: Any, **kwargs: Any) -> Any:
                if before:
                    self.reached(before)
                result = inner(*args, **kwargs)
                if after:
                    self.reached(after)
                return result

        setattr(owner, name, passing)


def _in_folds(points: _Points) -> None:
    from projections.engine import batch

    points.around(batch, "withhold", before="fold.begun")
    points.around(batch, "named", after="fold.done")
    inner = batch.transaction  # type: ignore[attr-defined]  # it is imported there by name

    @contextlib.contextmanager
    def transaction(con: Any) -> Iterator[None]:
        with inner(con):
            yield
            points.reached("fold.before-commit")
        points.reached("fold.committed")

    batch.transaction = transaction  # type: ignore[attr-defined]


def _in_appends(points: _Points) -> None:
    from ledger.broker.connection import BrokerConnection
    from ledger.store.atomic_batch import OpenBatch
    from ledger.store.jetstream import JetStreamLedger

    points.around(OpenBatch, "_send", after="batch.sent")  # all but the message that commits it
    inner = BrokerConnection.ask

    async def ask(self: Any, subject: str, *args: Any, **kwargs: Any) -> Any:
        asked = await inner(self, subject, *args, **kwargs)
        if subject.startswith("ledger."):
            points.reached("append.sent")
        return asked

    BrokerConnection.ask = ask  # type: ignore[method-assign]
    for name in ("append", "append_many"):
        points.around(JetStreamLedger, name, before="append.begun", after="append.acknowledged")


def _in_the_node(points: _Points) -> None:
    from ledger.broker.server import EmbeddedServer
    from ledger.store.parked import ParkedEvents
    from producers.node import archiving, rebuilds
    from projections.engine.view import View
    from projections.live import projector
    from projections.live.view_file import LiveFiles
    from projections.vectors.client import VectorClient
    from projections.vectors.feed import VectorFeed

    projector.CHECKPOINT_EVERY_EVENTS = 40  # in tests there are never as many as in earnest
    archiving.LOOK_SECONDS = 0.2
    points.around(View, "moved", before="view.moving", after="view.moved")
    points.around(projector.Projector, "_checkpoint", before="checkpoint.begun", after="checkpoint.done")
    points.around(VectorClient, "index", before="vectors.asked", after="vectors.answered")
    points.around(rebuilds, "rebuild_in_own_process", after="swap.rebuilt")
    points.around(rebuilds, "point_to", before="swap.compared", after="swap.pointed")
    points.around(LiveFiles, "swap", after="swap.done")
    points.around(ParkedEvents, "decide", before="park.begun", after="park.decided")
    points.around(EmbeddedServer, "start", after="start.broker")
    points.around(LiveFiles, "open_live", after="start.view")
    points.around(VectorFeed, "start", after="start.vectors")


def _in_models(points: _Points) -> None:
    from consumers.model import ChatModel
    from consumers.reactors import subscription
    from consumers.reactors.work import Work

    subscription.ACK_WAIT = 1.0  # in tests nobody waits for a killed node as long as in earnest
    points.around(subscription, "_process", before="model.heard", after="model.worked")
    points.around(Work, "call_begins", after="model.begun")
    points.around(ChatModel, "ask", before="model.asking", after="model.answered")
    points.around(Work, "keep", before="model.keeping", after="model.kept")


def _in_vectors(points: _Points) -> None:
    from projections.vectors import engine
    from projections.vectors.store import edge
    from projections.vectors.store.edge import EdgeStore

    engine.CHECKPOINT_SECONDS = 0.05
    points.around(EdgeStore, "upsert", before="upsert.begun", after="upsert.done")
    points.around(EdgeStore, "close_version", before="close.begun", after="close.done")
    points.around(EdgeStore, "set_checkpoint", before="flush.begun", after="flush.done")
    points.around(edge, "replace_file", before="flush.flushed")


def _in_the_archive(points: _Points) -> None:
    from ledger.archive import events, segments
    from ledger.archive.event_file import SegmentWriter
    from projections.archive import columns, writing

    points.around(SegmentWriter, "close", before="full.events")
    points.around(writing, "write_columns", before="full.columns")
    points.around(SegmentWriter, "close", before="events.begun", after="events.file")
    points.around(events, "write_manifest", after="events.signed")
    points.around(segments, "sync", after="synced")
    points.around(writing, "write_events", after="events.written")
    points.around(columns, "write_manifest", before="columns.files", after="columns.signed")
    points.around(writing, "write_columns", before="columns.begun", after="columns.written")


def _deliver_badly(chance: random.Random) -> None:
    """Deliver batches to the fold again, overlapping, late, and out of order; none of that may change a view."""
    from kledger.contract.errors import LogGap
    from ledger.store.jetstream import JetStreamLedger
    from projections.live import projector

    inner_read: Callable[..., AsyncGenerator[Any, None]] = JetStreamLedger.read

    async def read(self: Any, start: int = 1, *, follow: bool = False, batch: int = 1_000) -> AsyncGenerator[Any, None]:
        before: list[Any] = []
        async with contextlib.aclosing(inner_read(self, start, follow=follow, batch=batch)) as batches:
            async for events in batches:
                yield before + events if follow and before and chance.random() < 0.3 else events
                if follow and chance.random() < 0.3:
                    yield events
                if follow and before and chance.random() < 0.2:
                    yield before
                before = events[-20:]

    JetStreamLedger.read = read  # type: ignore[method-assign]
    inner_fold = projector.fold_strictly  # type: ignore[attr-defined]  # it is imported there by name

    def fold(bench: Any, events: list[Any], *more: Any) -> Any:
        position = bench.position()
        ahead = [event for event in events if event.position > position]
        if len(ahead) > 1 and chance.random() < 0.3:
            wrong = [*ahead[1:], ahead[0]] if chance.random() < 0.5 else ahead[1:]
            try:
                inner_fold(bench, wrong, *more)
            except LogGap:
                pass
            else:
                (ARMED / VIOLATION).write_text(f"a batch out of order was folded at position {position}")
            if bench.position() != position:
                (ARMED / VIOLATION).write_text(f"a batch that was refused moved the view from position {position}")
        return inner_fold(bench, events, *more)

    projector.fold_strictly = fold  # type: ignore[attr-defined, assignment]  # as above


def _tell() -> None:
    faulthandler.dump_traceback(sys.stderr, all_threads=True)
    for task in asyncio.all_tasks():
        task.print_stack(file=sys.stderr)
        sys.stderr.write(f"waits for {task!r}\n")
    sys.stderr.flush()


def _leave_no_room() -> None:
    """From now on this process writes only the first bytes of a file, as on a disk that is full."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (random.randrange(600), most))


def _kill(victim: str, process: str) -> None:
    node = os.getpid() if process == "node" else os.getppid()
    found = {"node": [node], "self": [os.getpid()], "broker": _broker(), "vectors": _children(node, b"vectors.process")}
    found["all"] = [*found["broker"], *_children(node, b"projections."), node]
    for pid in sorted(found[victim], key=lambda pid: pid == os.getpid()):  # oneself last
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _broker() -> list[int]:
    files = Path(os.environ["FAULT_DATA"]) / "broker"
    try:
        pid = int((files / "nats-server.pid").read_text())
        ours = str(files / "nats-server.conf").encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return []
    return [pid] if ours else []  # a process id may be anybody's by now


def _children(parent: int, naming: bytes) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with contextlib.suppress(OSError):
                if naming in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found
