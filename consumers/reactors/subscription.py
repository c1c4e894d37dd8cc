"""Reactor subscriptions: durable pull consumers of the log that deliver each request to one node, until it is done.

All nodes share one durable consumer for each reactor. The broker redelivers a request when its node sends nothing for
ACK_WAIT seconds. The content of a request is read from the view, which unseals it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import nats.errors
import structlog
from faststream import AckPolicy
from faststream.exceptions import NackMessage, RejectMessage
from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub
from nats.js.api import ConsumerConfig

from kledger.contract.errors import (
    BrokerUnavailable,
    IllegalSubject,
    InvalidPayload,
    LedgerError,
    ServiceFailed,
    VersionConflict,
    ViewBehind,
)
from ledger.broker.access import LEDGER_STREAM
from ledger.wire.subjects import ROOT, encode_token, parse_subject

log = structlog.get_logger(__name__)

VARIABLE = "KLEDGER_REACTOR_ACK_WAIT"
ACK_WAIT = 15.0
"""Seconds of silence after which a request is delivered to another node, where the environment says nothing else."""
LEAST_ACK_WAIT, MOST_ACK_WAIT = 0.1, 86_400.0
PAUSE = 2.0
"""Seconds before a failed request is redelivered."""
MOST_TRIES = 8
"""Deliveries after which a request that fails by an internal error is recorded as failed."""
LAST_TRY = 3 * MOST_TRIES
_PASSING = (BrokerUnavailable, ViewBehind, VersionConflict)


@dataclass(frozen=True, slots=True)
class Request:
    """The first event of a process, as delivered to a reactor. `delivery` counts from 1."""

    kind: str
    id: str
    actor: str
    position: int
    delivery: int


class Reactor(Protocol):
    """Processes one kind of request. `name` is that of its durable consumer, `kind` the entity of the requests."""

    name: str
    kind: str
    stages: tuple[str, ...]
    """The stages that are requests."""
    at_once: int
    """Concurrent requests on one node."""

    async def react(self, request: Request) -> None:
        """Process a request to its end. It may have been begun before, by this node or by one that was killed.

        Transient errors (no broker, a view behind, a conflict) are raised and retried; others are passed to `fail`.
        """

    async def fail(self, request: Request, error: LedgerError) -> None:
        """Record that the request failed, and why."""


def subscribe(broker: NatsBroker, org: str, reactors: Sequence[Reactor], inbox_prefix: str) -> None:
    """Subscribe each reactor to the requests of one tenant. Raises InvalidPayload for an invalid setting."""
    ack_wait = ack_wait_from_environment()
    for reactor in reactors:
        for stage in reactor.stages:
            _subscribe(broker, org, reactor, stage, inbox_prefix, ack_wait)


def ack_wait_from_environment() -> float:
    """After how many seconds of silence another node gets a request. Raises InvalidPayload."""
    value = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(value or ACK_WAIT)
    except ValueError:
        seconds = 0.0
    if not LEAST_ACK_WAIT <= seconds <= MOST_ACK_WAIT:
        raise InvalidPayload(
            f"{VARIABLE}={value[:40]} is no setting: write seconds, from {LEAST_ACK_WAIT:g} to {MOST_ACK_WAIT:g}",
            errors=[{"field": VARIABLE, "reason": f"is no number from {LEAST_ACK_WAIT:g} to {MOST_ACK_WAIT:g}"}],
        )
    return seconds


def _subscribe(broker: NatsBroker, org: str, reactor: Reactor, stage: str, inbox_prefix: str, ack_wait: float) -> None:
    subject = ".".join((ROOT, encode_token(org), reactor.kind, "*", stage, ">"))
    first = stage == reactor.stages[0]

    subscriber = broker.subscriber(
        subject,
        stream=JStream(LEDGER_STREAM, declare=False),
        durable="-".join((reactor.name, *(() if first else (stage,)), encode_token(org))),
        config=ConsumerConfig(ack_wait=ack_wait, max_deliver=-1, max_ack_pending=1_000),
        pull_sub=PullSub(batch_size=reactor.at_once),
        inbox_prefix=f"{inbox_prefix}.".encode(),
        ack_policy=AckPolicy.NACK_ON_ERROR,
        decoder=_raw_body,
        no_reply=True,
        title=f"{reactor.name} reactor" if first else f"{reactor.name} reactor, {stage}",
        description=f"Does what `{reactor.kind}.{stage}` asks for.",
    )
    subscriber.tasks = _UnderWay()

    @subscriber
    async def receive(_body: bytes, message: NatsMessage) -> None:
        metadata = message.raw_message.metadata
        try:
            parts = parse_subject(message.raw_message.subject)
        except IllegalSubject as error:  # no fold accepts it either, and it would be redelivered for ever
            raise RejectMessage from error
        position, delivery = metadata.sequence.stream, metadata.num_delivered or 1
        request = Request(reactor.kind, parts.entity_id, parts.actor, position, delivery)
        async with _in_progress(message, ack_wait):
            await _process(reactor, request)


class _UnderWay(list[asyncio.Task[Any]]):
    """The tasks of a subscriber without those that have ended.

    FastStream begins a task anew whenever one ends with an error, and keeps each with its traceback until the node
    stops. A pull that finds nothing ends so, several times a minute: nats-py raises a plain TimeoutError where the
    time is up between its two requests, and FastStream expects the one of nats-py.
    """

    def append(self, task: asyncio.Task[Any]) -> None:
        self[:] = [each for each in self if not each.done()]
        super().append(task)


async def _raw_body(message: NatsMessage) -> bytes:
    body: bytes = message.body
    return body


async def _process(reactor: Reactor, request: Request) -> None:
    """Run the reactor on a request. Raises NackMessage to have it redelivered, RejectMessage to give it up."""
    about = {"reactor": reactor.name, "id": request.id, "delivery": request.delivery}
    try:
        try:
            await reactor.react(request)
        except _PASSING as error:
            if request.delivery < MOST_TRIES or isinstance(error, BrokerUnavailable):
                raise
            await reactor.fail(request, error)
        except LedgerError as error:
            log.info("a request came to nothing", code=error.code, **about)
            await reactor.fail(request, error)
        except Exception:
            log.exception("a reactor failed in a way that it did not foresee", **about)
            if request.delivery < MOST_TRIES:
                raise
            await reactor.fail(request, ServiceFailed("something inside the node failed: its log has the cause"))
    except LedgerError as error:
        if request.delivery >= LAST_TRY and not isinstance(error, BrokerUnavailable):
            log.error("a request is let go: not even its failure can be stated", code=error.code, **about)
            raise RejectMessage from error
        log.info("a request is tried again", code=error.code, **about)
        raise NackMessage(delay=PAUSE) from error
    except Exception as error:
        raise NackMessage(delay=PAUSE * request.delivery) from error


@asynccontextmanager
async def _in_progress(message: NatsMessage, ack_wait: float) -> AsyncIterator[None]:
    """Keep telling the broker that the request is in progress, so that it is not redelivered."""

    async def extend() -> None:
        while True:
            await asyncio.sleep(ack_wait / 3)
            with contextlib.suppress(nats.errors.Error):
                await message.in_progress()

    extending = asyncio.create_task(extend(), name="in-progress")
    try:
        yield
    finally:
        extending.cancel()
