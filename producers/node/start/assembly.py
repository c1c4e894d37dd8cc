"""Assembly of a node on its foundation: view, vectors, integrity, operations, reactors and interfaces, in this order.

This is the one place that knows both producers and consumers.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

import structlog

from consumers.app import create_app as create_consumer
from consumers.reactors.lives import LifeKeeper
from kledger.contract.addresses import LOOPBACK
from ledger.broker.access import BrokerAccess
from ledger.installed import PRODUCT, version
from ledger.privacy.holding_back import HoldingBack
from producers.http.app import create_app
from producers.node.address import NodeAddress
from producers.node.archiving import Archiving
from producers.node.embedding_metrics import EmbeddingMetrics
from producers.node.eraser import Eraser
from producers.node.integrity import Integrity, create_notary, receipt_signer
from producers.node.models import with_models
from producers.node.operator import Operator
from producers.node.otel import of_folding
from producers.node.parking import Parking
from producers.node.readiness import Readiness
from producers.node.rebuilds import Rebuilds
from producers.node.receipts import Receipts
from producers.node.roles import writes_vectors
from producers.node.sessions import keep_in_time, open_sessions
from producers.node.sizes import NodeSizes
from producers.node.start.beside import beside
from producers.node.start.foundation import Foundation, NodeSettings
from producers.node.start.serving import serving
from producers.node.start.stopped import go_on, unless
from producers.node.start.vault_count import count_records
from producers.node.status import NodeStatus
from producers.operations.desk import Desk
from producers.operations.gathered_recalls import GatheringLedger
from producers.operations.own_writes import Written
from producers.operations.profiles.registration import keep_registered
from producers.operations.publish import Tally, publish
from producers.operations.sealing import SealingLedger
from projections.engine.view import View
from projections.live.belonging import belonged_before
from projections.live.persons import PersonsOfItems
from projections.live.projector import Projector
from projections.search.ask import Searcher
from projections.vectors.embedding.kept_jetstream import ensure_embeddings_stream
from projections.vectors.embedding.settings import embedding_from_environment
from projections.vectors.feed import VectorFeed
from projections.vectors.generations import directory_in_use
from projections.vectors.wire import KeptAt, Settings

log = structlog.get_logger(__name__)

_POLL_SECONDS = 0.05
_LOG_EVERY_SECONDS = 2.0


async def assemble(base: Foundation, stack: AsyncExitStack, started: float, ending: Callable[[], bool]) -> NodeAddress:
    """Start what stands on the foundation; `stack` stops it. Returns once the node is ready.

    `started` is the start on the monotonic clock. Raises StoppedAtStart once `ending` is true, InvalidPayload,
    NodeMisconfigured, BrokerMisconfigured, BrokerUnavailable, VectorProcessGone.
    """
    go_on(ending)
    settings, access, ledger, keyring = base.settings, base.access, base.ledger, base.keyring
    opened, refolded = await base.opening
    view = View(opened)
    stack.callback(view.close)
    go_on(ending)
    holding = HoldingBack()
    sessions = await open_sessions(
        access, base.vault, keyring, holding, base.environment.sessions, settings.replicas, stack
    )
    notary = await create_notary(ledger, settings.data, settings.checkpoint_hook)
    stack.push_async_callback(notary.close, base.broker_gone)
    go_on(ending)
    archiving = Archiving(access, settings.data, notary, base.environment.segment_events, base.master)

    stack.callback(lambda: base.files.stop_serving(view.instance))
    projector = Projector(ledger, view, base.parked)
    projector.reopen = partial(base.files.reopen, view)
    projector.more_memory = base.files.give_memory
    projector.archive = archiving.open
    stack.callback(projector.close)
    stack.callback(keyring.close)
    may_write = await writes_vectors(settings.roles, settings.qdrant, access, settings.replicas, stack)
    go_on(ending)
    feed = VectorFeed(view, await _vector_settings(settings, access), settings.org, may_write=may_write)
    feed.ending, feed.spare = ending, base.spare
    if refolded:
        feed.will_begin_anew()
    stack.push_async_callback(feed.close)
    feed.begin_within(base.head)
    await asyncio.sleep(0)  # it has asked the vector process, which begins beside what follows
    base.files.serve(view.instance)

    integrity = Integrity(ledger, view, notary, settings.org, settings.data)
    await count_records(base.vault, base.in_vault, integrity, stack)
    rebuilds = Rebuilds(
        access=access,
        ledger=ledger,
        view=view,
        projector=projector,
        feed=feed,
        files=base.files,
        data=settings.data,
        integrity=integrity,
        parked=base.parked,
        archiving=archiving,
        master=base.master,
    )
    sealing = SealingLedger(ledger, base.vault, PersonsOfItems(view).of, holding, before=belonged_before(view))
    receipts = Receipts(settings.data / "receipts", receipt_signer(notary.files))
    eraser = Eraser(rebuilds, base.vault, keyring, sealing, sessions, receipts, settings.org, base.master)
    rebuilds.undisturbed = eraser.stable_comparison
    status = NodeStatus(rebuilds, eraser, started, Readiness(base.head), beside(base.vault.connection))
    operator = Operator(rebuilds, eraser, status, base.tokens)
    stack.push_async_callback(operator.jobs.close)
    searcher = Searcher(view, feed)
    desk = _desk(base, sealing, view, searcher, operator, stack)
    desk.sessions = sessions
    reactors = await with_models(desk, view, searcher, feed, settings.roles, stack)
    keyring.when_forgotten(desk.recalled.forget)
    if desk.rewriter is not None:  # what it keeps may hold words of whoever is forgotten
        keyring.when_forgotten(desk.rewriter.forget)
    if feed.settings.embedding is not None:
        desk.collected = [*desk.collected, EmbeddingMetrics(feed.backlog.state)]
    go_on(ending)
    projector.folded = of_folding(desk.tally)
    loops: dict[str, Callable[[], Awaitable[None]]] = {
        "projector": projector.run,
        "vectors": feed.run,
        "notary": notary.run,
        "archive": archiving.run,
        "forgetting": eraser.run,
        "registration": partial(keep_registered, desk, base.tokens),
        "sessions": partial(keep_in_time, desk),
    }
    if "reactors" in settings.roles:
        loops["memories"] = LifeKeeper(settings.org, view, partial(publish, desk.ledger, desk.tally)).run
    consumer = create_consumer(access, loops, operator.status, version(PRODUCT), org=settings.org, reactors=reactors)
    limits, local = base.environment.limits, base.sock.getsockname()[0] in LOOPBACK
    app = create_app(desk, on_loopback=local, tokens=base.tokens, limits=limits)  # 0.3 s, beside the start of the feed
    await unless(ending, feed.start())
    await stack.enter_async_context(consumer)
    go_on(ending)
    address = await stack.enter_async_context(serving(app, base.sock, limits, app.state.pages.close))
    await _until_ready(operator, ending)
    quack = base.files.address
    return NodeAddress(address, access.url, quack.port if quack else None, view.position)


def _desk(
    base: Foundation, sealing: SealingLedger, view: View, searcher: Searcher, operator: Operator, stack: AsyncExitStack
) -> Desk:
    tally = Tally()
    recalls = GatheringLedger(sealing, tally)
    stack.push_async_callback(recalls.close)
    parking = Parking(operator.rebuilds, operator.jobs, base.parked)
    stated, org = base.environment, base.settings.org
    desk = Desk(recalls, view, searcher, operator, org, tally, parking, vault=base.vault, language=stated.language)
    desk.recalls = recalls
    desk.recorded, desk.lifetimes, desk.reflected = stated.recorded, stated.lifetimes, stated.reflected
    desk.sizes = NodeSizes(base.settings.data, view)
    desk.held_at_start = Written(base.head, base.head if "vectors" in base.settings.roles else 0)
    return desk


async def _until_ready(operator: Operator, ending: Callable[[], bool]) -> None:
    """Return once the views have the head of the log at the start, or the projector cannot get there."""
    logged_at = time.monotonic()
    while (waits_for := (await operator.health()).waits_for) and operator.rebuilds.projector.trouble is None:
        go_on(ending)
        if time.monotonic() - logged_at > _LOG_EVERY_SECONDS:
            log.info("not ready yet", waits_for=waits_for)
            logged_at = time.monotonic()
        await asyncio.sleep(_POLL_SECONDS)


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
