"""Composition root of a node: starts broker, log, views, vectors and interfaces, in this order.

`run` starts the parts, prints one ready line, and stops them in reverse order at a signal. This is the one place that
knows both producers and consumers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog
import uvicorn
import uvloop

from consumers.app import create_app as create_consumer
from consumers.reactors.lives import LifeKeeper
from kledger.contract.errors import LedgerError
from kledger.contract.language import language_of_node
from kledger.contract.words import NodeRole
from ledger.broker.access import BrokerAccess
from ledger.broker.publisher_config import access_with
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import DEFAULT_ORG, JsonObject
from ledger.installed import PRODUCT, version
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.keyring import Keyring
from ledger.privacy.master_key import kept_master_key, lost, new_master_key
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.runtime.data_directory import prepare_data_directory
from ledger.runtime.default_data import DATA
from ledger.runtime.gc_tuning import collect_seldom
from ledger.runtime.logs import VARIABLE, Level, log_to_stderr
from ledger.runtime.private import private_files
from ledger.store.jetstream import JetStreamLedger
from producers.access.book import TokenBook
from producers.access.limits import limits_from_environment
from producers.access.opening import LOOPBACK, analysts_of, tokens_for
from producers.http.app import create_app
from producers.http.connections import bounded
from producers.node.address import HTTP, LOCK, NodeAddress, cannot_listen, host_and_port, reserved, take
from producers.node.archiving import Archiving, segment_events_from_environment
from producers.node.embedding_metrics import EmbeddingMetrics
from producers.node.eraser import Eraser
from producers.node.integrity import Integrity, create_notary, receipt_signer
from producers.node.models import with_models
from producers.node.operator import Operator
from producers.node.otel import of_folding, traced
from producers.node.parking import Parking, open_parked, opened_as_decided
from producers.node.readiness import Readiness
from producers.node.rebuilds import Rebuilds
from producers.node.receipts import Receipts
from producers.node.roles import ALL_ROLES, writes_vectors
from producers.node.sessions import keep_in_time, open_sessions
from producers.node.sizes import NodeSizes
from producers.node.status import NodeStatus
from producers.operations.desk import Desk
from producers.operations.gathered_recalls import GatheringLedger
from producers.operations.lifetimes import lifetimes_from_environment
from producers.operations.own_writes import Written
from producers.operations.profiles.registration import keep_registered
from producers.operations.publish import Tally, publish
from producers.operations.recording import detail_days_from_environment, recorded_from_environment
from producers.operations.reflection.asking import reflected_from_environment
from producers.operations.sealing import SealingLedger
from producers.web.addresses import HOME
from projections.engine.own_threads import end_without_them
from projections.engine.view import View
from projections.live.persons import PersonsOfItems
from projections.live.projector import Projector
from projections.live.view_file import LiveFiles
from projections.search.ask import Searcher
from projections.vectors.client import spare_process
from projections.vectors.embedding.kept_jetstream import ensure_embeddings_stream
from projections.vectors.embedding.settings import embedding_from_environment
from projections.vectors.feed import VectorFeed
from projections.vectors.generations import directory_in_use
from projections.vectors.wire import KeptAt, Settings

log = structlog.get_logger(__name__)

_DRAIN_SECONDS = 10
_POLL_SECONDS = 0.05
_LOG_EVERY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings of `kledger up`. `nats` and `qdrant` are URLs of outside servers; `quack` is a port, 0 for any."""

    data: Path = DATA
    http: str = HTTP
    nats: str | None = None
    qdrant: str | None = None
    quack: int | None = 0
    org: str = DEFAULT_ORG
    checkpoint_hook: str | None = None
    replicas: int = 1
    roles: frozenset[NodeRole] = ALL_ROLES
    log_level: Level | None = None


def run(settings: NodeSettings) -> int:
    """Run a node until SIGTERM or SIGINT; 0 after a clean stop, 1 when it could not start."""
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
    loop = asyncio.get_running_loop()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(kind, stopping.set)
    async with node(settings, stopping.is_set) as address:
        collect_seldom()
        sys.stdout.write(
            f"kledger is ready: http://{address.http} · page http://{address.http}{HOME}"
            f" · nats {address.nats} · data {settings.data}"
            + (f" · quack port {address.quack}" if address.quack else "")
            + "\n"
        )
        sys.stdout.flush()
        about: JsonObject = {"http": address.http, "nats": address.nats, "data": str(settings.data)}
        about |= {"seconds": round(time.monotonic() - began, 3), "version": version(PRODUCT)}
        log.info("ready", **about, position=address.position)
        await stopping.wait()
        log.info("stopping")
    log.info("stopped")


@asynccontextmanager
async def node(settings: NodeSettings, ending: Callable[[], bool] = lambda: False) -> AsyncIterator[NodeAddress]:
    """A running node; once `ending` returns true it restarts no process.

    Raises DataDirectoryInUse, NodeMisconfigured, BrokerMisconfigured, BrokerUnavailable, VectorProcessGone.
    """
    started = time.monotonic()
    host, port = host_and_port(settings.http)
    language = language_of_node()
    recorded, lifetimes = recorded_from_environment(), lifetimes_from_environment()
    reflected = reflected_from_environment()
    segment_events, recall_days = segment_events_from_environment(), detail_days_from_environment()
    async with AsyncExitStack() as stack:
        stack.enter_context(private_files())
        stack.enter_context(_only_node_on(settings.data))
        tokens = tokens_for(settings.data, host)
        sock = stack.enter_context(reserved(host, port))
        stack.enter_context(traced(version(PRODUCT)))
        spare = await stack.enter_async_context(spare_process())  # it loads while the broker and the view begin
        access, broker_trouble = await _broker(settings, stack, ending)
        await ensure_stream(access, replicas=settings.replicas)
        await ensure_keys_bucket(access, replicas=settings.replicas)
        master = await _master_key(access, settings.data)
        vault = await JetStreamVault.open(access, master)
        stack.push_async_callback(vault.close)
        keyring = Keyring.over(vault, asyncio.get_running_loop())
        holding = HoldingBack()
        sessions = await open_sessions(access, vault, keyring, holding, settings.replicas, stack)
        ledger = await JetStreamLedger.connect(access, role="node", name="kledger-node")
        ledger.hindered = broker_trouble
        stack.push_async_callback(ledger.close)
        head = (await ledger.head()).position
        await vault.bound(head)
        notary = await create_notary(ledger, settings.data, settings.checkpoint_hook)
        stack.push_async_callback(notary.close)
        archiving = Archiving(access, settings.data, notary, segment_events, master)

        files = LiveFiles(settings.data / "views", settings.quack, analysts_of(tokens), keyring, recall_days)
        parked = await open_parked(access, replicas=settings.replicas)
        stack.push_async_callback(parked.close)
        opened, refolded = await opened_as_decided(files, ledger, parked)
        view = View(opened)
        stack.callback(view.close)
        stack.callback(lambda: files.stop_serving(view.instance))
        projector = Projector(ledger, view, parked)
        projector.reopen = partial(files.reopen, view)
        projector.archive = archiving.open
        stack.callback(projector.close)
        stack.callback(keyring.close)
        may_write = await writes_vectors(settings.roles, settings.qdrant, access, settings.replicas, stack)
        feed = VectorFeed(view, await _vector_settings(settings, access), settings.org, may_write=may_write)
        feed.ending, feed.spare = ending, spare
        if refolded:
            feed.will_begin_anew()
        await feed.start()
        stack.push_async_callback(feed.close)
        files.serve(view.instance)

        integrity = Integrity(ledger, view, notary, settings.org, settings.data)
        rebuilds = Rebuilds(
            access=access,
            ledger=ledger,
            view=view,
            projector=projector,
            feed=feed,
            files=files,
            data=settings.data,
            integrity=integrity,
            parked=parked,
            archiving=archiving,
            master=master,
        )
        searcher = Searcher(view, feed)
        sealing = SealingLedger(ledger, vault, PersonsOfItems(view).of, holding)
        receipts = Receipts(settings.data / "receipts", receipt_signer(notary.files))
        eraser = Eraser(rebuilds, vault, keyring, sealing, sessions, receipts, settings.org, master)
        rebuilds.undisturbed = eraser.stable_comparison
        operator = Operator(rebuilds, eraser, NodeStatus(rebuilds, eraser, started, Readiness(head)), tokens)
        stack.push_async_callback(operator.jobs.close)
        parking = Parking(rebuilds, operator.jobs, parked)
        tally = Tally()
        recalls = GatheringLedger(sealing, tally)
        stack.push_async_callback(recalls.close)
        desk = Desk(recalls, view, searcher, operator, settings.org, tally, parking, vault=vault, language=language)
        desk.recalls = recalls
        desk.recorded, desk.lifetimes, desk.sizes = recorded, lifetimes, NodeSizes(settings.data, view)
        desk.sessions, desk.reflected = sessions, reflected
        desk.held_at_start = Written(head, head if "vectors" in settings.roles else 0)
        reactors = await with_models(desk, view, searcher, feed, settings.roles, stack)
        keyring.when_forgotten(desk.recalled.forget)
        if desk.rewriter is not None:  # what it keeps may hold words of whoever is forgotten
            keyring.when_forgotten(desk.rewriter.forget)
        if feed.settings.embedding is not None:
            desk.collected = [*desk.collected, EmbeddingMetrics(feed.backlog.state)]
        projector.folded = of_folding(desk.tally)
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "projector": projector.run,
            "vectors": feed.run,
            "notary": notary.run,
            "archive": archiving.run,
            "forgetting": eraser.run,
            "registration": partial(keep_registered, desk, tokens),
            "sessions": partial(keep_in_time, desk),
        }
        if "reactors" in settings.roles:
            loops["memories"] = LifeKeeper(settings.org, view, partial(publish, desk.ledger, desk.tally)).run
        consumer = create_consumer(
            access, loops, operator.status, version(PRODUCT), org=settings.org, reactors=reactors
        )
        await stack.enter_async_context(consumer)
        address = await stack.enter_async_context(_http(desk, sock, tokens))
        await _until_ready(operator, ending)
        yield NodeAddress(address, access.url, files.address.port if files.address else None, view.position)


async def _until_ready(operator: Operator, ending: Callable[[], bool]) -> None:
    """Return once the views have the head of the log at the start, or the projector cannot get there."""
    logged_at = time.monotonic()
    while (
        not ending()
        and (waits_for := (await operator.health()).waits_for)
        and operator.rebuilds.projector.trouble is None
    ):
        if time.monotonic() - logged_at > _LOG_EVERY_SECONDS:
            log.info("not ready yet", waits_for=waits_for)
            logged_at = time.monotonic()
        await asyncio.sleep(_POLL_SECONDS)


async def _broker(
    settings: NodeSettings, stack: AsyncExitStack, ending: Callable[[], bool]
) -> tuple[BrokerAccess, Callable[[], str | None]]:
    """Access to the broker, and a function that returns why it accepts no writes (None while it does)."""
    if settings.nats is not None:
        credentials = os.environ.get("KLEDGER_NATS_CREDENTIALS")
        access = access_with(settings.nats, Path(credentials)) if credentials else BrokerAccess.from_url(settings.nats)
        return access, lambda: None
    server = EmbeddedServer(settings.data / "broker")
    server.ending = ending
    access = await server.start()
    stack.push_async_callback(server.stop)
    return access, lambda: server.trouble


async def _master_key(access: BrokerAccess, data: Path) -> bytes:
    """The master key, created for a new ledger. Raises WrongMasterKey where an existing one is lost."""
    existing = kept_master_key(data)
    if existing is None and await JetStreamVault.is_begun(access):
        raise lost(data)
    return existing or new_master_key(data)


async def _vector_settings(settings: NodeSettings, access: BrokerAccess) -> Settings:
    embedding = embedding_from_environment()
    kept_at = None
    if embedding is not None:
        await ensure_embeddings_stream(access, replicas=settings.replicas)
        if access.own_user is None:
            kept_at = KeptAt(access.url, "node", access.passwords.get("node"))
        else:
            kept_at = KeptAt(access.url_for("node"), "node")
    return Settings(
        directory=str(directory_in_use(settings.data / "vectors")),
        qdrant_url=settings.qdrant,
        qdrant_api_key=os.environ.get("QDRANT_API_KEY"),
        embedding=embedding,
        kept_at=kept_at,
    )


@asynccontextmanager
async def _http(desk: Desk, sock: socket.socket, tokens: TokenBook) -> AsyncIterator[str]:
    """Serve the HTTP interface; requests in progress are answered before the context ends."""
    host, port = sock.getsockname()[:2]
    limits = limits_from_environment()
    app = create_app(desk, on_loopback=host in LOOPBACK, tokens=tokens, limits=limits)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded(limits),
        ws="none",
        proxy_headers=False,  # callers are identified by token, never by address
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        log_config=None,
        access_log=False,
        lifespan="on",  # MCP at /mcp needs it
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    try:
        sock.listen(config.backlog)
    except OSError as error:  # somebody listened there meanwhile
        raise cannot_listen(host, port, error) from error
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve([sock]), name="http")  # `serve` would handle signals, as the node does
    try:
        while not server.started:
            if serving.done():
                serving.result()
            await asyncio.sleep(0.005)
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        app.state.pages.close()  # streams that would not end by themselves
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@contextmanager
def _only_node_on(data: Path) -> Iterator[None]:
    """Lock the data directory. Raises DataDirectoryInUse when another node holds it."""
    prepare_data_directory(data)
    with (data / LOCK).open("a+") as file:
        take(file, data)
        with contextlib.suppress(OSError):  # a full disk must not keep a node from starting
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield
