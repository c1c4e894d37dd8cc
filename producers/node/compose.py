"""Composition root of a node: begins its foundation, loads and assembles the rest, and ends all of it at a signal."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog
import uvloop

from kledger.contract.errors import LedgerError, NodeMisconfigured
from ledger.broker.short_slices import short_slices_of_this_thread
from ledger.event import JsonObject
from ledger.installed import PRODUCT, version
from ledger.runtime.gc_tuning import collect_seldom, loading
from ledger.runtime.logs import VARIABLE, log_to_stderr
from ledger.runtime.no_room import no_room
from producers.node.address import NodeAddress
from producers.node.start.foundation import NodeSettings, begin
from producers.node.start.stopped import SIGNALS, StoppedAtStart, go_on, heard_at_once
from producers.web.addresses import HOME
from projections.engine.threads.own_threads import end_without_them

log = structlog.get_logger(__name__)


def run(settings: NodeSettings) -> int:
    """Run a node until a signal stops it; 0 after a clean stop, also amid its start, 1 when it could not start."""
    settings = replace(settings, data=settings.data.resolve())  # what it says of its files holds in every folder
    if settings.log_level is not None:
        os.environ[VARIABLE] = settings.log_level  # inherited by the processes that the node starts
    try:
        log_to_stderr()
    except LedgerError as error:
        sys.stderr.write(f"kledger: {error.message} ({error.code})\n")
        return 1
    # Folding threads release the GIL sooner than after the default 5 ms, which would add to a search's latency.
    sys.setswitchinterval(0.0001)
    short_slices_of_this_thread()
    try:
        uvloop.run(_run(settings))
    except LedgerError as error:
        sys.stderr.write(f"kledger: {error.message} ({error.code})\n")
        return 1
    end_without_them()  # everything else is closed by now
    return 0


async def _run(settings: NodeSettings) -> None:
    began = time.monotonic()
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            log.info("stopping")

    loop = asyncio.get_running_loop()
    for kind in SIGNALS:
        loop.add_signal_handler(kind, stop)
    try:
        async with node(settings, stopping.is_set, partial(heard_at_once, stop)) as address:
            go_on(stopping.is_set)
            collect_seldom()
            _say_ready(settings, address, began)
            await stopping.wait()
    except (StoppedAtStart, LedgerError) as error:
        if not stopping.is_set():
            raise
        # Ctrl-C in a terminal reaches processes of the node too, so a step may fail of it.
        log.info("stopped before it was ready", **({"why": error.message} if isinstance(error, LedgerError) else {}))
    log.info("stopped")


def _say_ready(settings: NodeSettings, address: NodeAddress, began: float) -> None:
    try:
        sys.stdout.write(
            f"kledger is ready: http://{address.http} · page http://{address.http}{HOME}"
            f" · nats {address.nats} · data {settings.data}"
            + (f" · quack port {address.quack}" if address.quack else "")
            + "\n"
        )
        sys.stdout.flush()
    except OSError:  # nobody reads it, or its disk is full: the node's log has it as well
        with Path(os.devnull).open("wb") as nowhere:  # else the end of the process fails of what is left in the buffer
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
    about: JsonObject = {"http": address.http, "nats": address.nats, "data": str(settings.data)}
    about |= {"seconds": round(time.monotonic() - began, 3), "version": version(PRODUCT)}
    log.info("ready", **about, position=address.position)


@asynccontextmanager
async def node(
    settings: NodeSettings,
    ending: Callable[[], bool] = lambda: False,
    heard: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> AsyncIterator[NodeAddress]:
    """A running node; once `ending` returns true it restarts no process. `heard` is around what keeps the event loop.

    Raises StoppedAtStart, DataDirectoryInUse, NodeMisconfigured, InvalidPayload, BrokerMisconfigured,
    BrokerUnavailable, VectorProcessGone, ServiceFailed (the disk is full).
    """
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        try:
            base = await begin(settings, stack, ending)
            go_on(ending)
            with loading(), heard():  # half of a node's modules, while a thread opens the view
                from producers.node.start.assembly import assemble

            address = await assemble(base, stack, started, ending)
        except OSError as error:
            raise no_room(error) or _not_usable(settings.data, error) from error
        yield address


def _not_usable(data: Path, error: OSError) -> NodeMisconfigured:
    file = data if error.filename is None else os.fsdecode(error.filename)
    return NodeMisconfigured(
        f"{file} cannot be used ({error.strerror or error}): give the node's user the right to read and write all of "
        f"{data}, or choose another data directory with --data"
    )
