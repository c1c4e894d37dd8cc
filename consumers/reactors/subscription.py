"""How does a reactor hear what it is asked? A durable consumer of the log: one node hears each request, until done.

The broker delivers a request again when the node that heard it says nothing for ACK_WAIT seconds, and all nodes of
one reactor share one durable consumer. What a request says is read from the view, which opens what is sealed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import nats.errors
import structlog
from faststream import AckPolicy
from faststream.exceptions import NackMessage, RejectMessage
from faststream.nats import JStream, NatsBroker, NatsMessage, PullSub
from nats.js.api import ConsumerConfig

from kledger.contract.errors import (
    BrokerUnavailable,
    IllegalSubject,
    LedgerError,
    ServiceFailed,
    VersionConflict,
    ViewBehind,
)
from ledger.broker.access import LEDGER_STREAM
from ledger.wire.subjects import ROOT, encode_token, parse_subject

log = structlog.get_logger(__name__)

ACK_WAIT = float(os.environ.get("KLEDGER_REACTOR_ACK_WAIT", "15"))
"""Seconds until a request that its node fell silent about is given to another one."""
PAUSE = 2.0
"""Seconds before a request is tried again that could not be worked on now."""
MOST_TRIES = 8
"""Deliveries after which a request that fails for a reason of the node's own is ended as failed."""
LAST_TRY = 3 * MOST_TRIES
_PASSING = (BrokerUnavailable, ViewBehind, VersionConflict)


@dataclass(frozen=True, slots=True)
class Request:
    """The first event of a process, as a reactor hears of it. `delivery` counts from 1."""

    kind: str
    id: str
    actor: str
    position: int
    delivery: int


class Reactor(Protocol):
    """Does one kind of work. `name` is that of its durable consumer, `kind` the entity whose requests it follows."""

    name: str
    kind: str
    hears: tuple[str, ...]
    """The stages of it that ask for something."""
    at_once: int
    """Requests that it works on at the same time, on one node."""

    async def react(self, request: Request) -> None:
        """Do what is asked, up to its end. It may have been begun before: by this node, or by one that was killed.

        What passes (no broker, a view behind, a conflict) is raised and tried again; other errors are told to `fail`.
        """
        ...

    async def fail(self, request: Request, error: LedgerError) -> None:
        """State that nothing came of the request, and why."""
        ...


def subscribe(broker: NatsBroker, org: str, reactors: Sequence[Reactor], inbox_prefix: str) -> None:
    """Have the broker's application hear the requests of one tenant for each reactor."""
    for reactor in reactors:
        for stage in reactor.hears:
            _subscribe(broker, org, reactor, stage, inbox_prefix)


def _subscribe(broker: NatsBroker, org: str, reactor: Reactor, stage: str, inbox_prefix: str) -> None:
    subject = ".".join((ROOT, encode_token(org), reactor.kind, "*", stage, ">"))
    first = stage == reactor.hears[0]

    @broker.subscriber(
        subject,
        stream=JStream(LEDGER_STREAM, declare=False),
        durable="-".join((reactor.name, *(() if first else (stage,)), encode_token(org))),
        config=ConsumerConfig(ack_wait=ACK_WAIT, max_deliver=-1, max_ack_pending=1_000),
        pull_sub=PullSub(batch_size=reactor.at_once),
        inbox_prefix=f"{inbox_prefix}.".encode(),
        ack_policy=AckPolicy.NACK_ON_ERROR,
        decoder=_as_it_is,
        no_reply=True,
        title=f"{reactor.name} reactor" if first else f"{reactor.name} reactor, {stage}",
        description=f"Does what `{reactor.kind}.{stage}` asks for.",
    )
    async def hear(_body: bytes, message: NatsMessage) -> None:
        told = message.raw_message.metadata
        try:
            parts = parse_subject(message.raw_message.subject)
        except IllegalSubject as error:  # no fold takes it either: given again, it would come for ever
            raise RejectMessage from error
        request = Request(reactor.kind, parts.entity_id, parts.actor, told.sequence.stream, told.num_delivered or 1)
        async with _held(message):
            await _worked_on(reactor, request)


async def _as_it_is(message: NatsMessage) -> bytes:
    body: bytes = message.body
    return body


async def _worked_on(reactor: Reactor, request: Request) -> None:
    """Raises NackMessage for what is to be tried again."""
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
async def _held(message: NatsMessage) -> AsyncIterator[None]:
    """Tell the broker all along that the request is being worked on."""

    async def tell() -> None:
        while True:
            await asyncio.sleep(ACK_WAIT / 3)
            with contextlib.suppress(nats.errors.Error):
                await message.in_progress()

    telling = asyncio.create_task(tell(), name="in-progress")
    try:
        yield
    finally:
        telling.cancel()
