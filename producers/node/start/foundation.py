"""Foundation of a node: its directory, its address, its broker with keys and log, and the view file that is opened.

All of these wait for a disk or for another process. So they begin before what stands on them is loaded (`assembly.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kledger.contract.errors import NodeMisconfigured
from kledger.contract.words import NodeRole
from ledger.broker.access import BrokerAccess
from ledger.broker.publisher_config import access_with
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import DEFAULT_ORG
from ledger.installed import PRODUCT, version
from ledger.privacy.keyring import Keyring
from ledger.privacy.known_records import Count
from ledger.privacy.master_key import kept_master_key, lost, new_master_key
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.runtime.data_directory import prepare_data_directory
from ledger.runtime.default_data import DATA
from ledger.runtime.logs import Level
from ledger.runtime.private import private_files
from ledger.store.jetstream import JetStreamLedger
from ledger.store.parked import ParkedEvents
from producers.access.book import TokenBook
from producers.access.opening import analysts_of, tokens_for
from producers.node.address import HTTP, LOCK, host_and_port, reserved, take
from producers.node.otel import traced
from producers.node.roles import ALL_ROLES
from producers.node.start.environment import NodeEnvironment
from producers.node.start.opened_view import open_parked, opened_as_decided
from producers.node.start.stopped import go_on, unless
from producers.node.start.threads import check_threads
from projections.engine.view import Instance
from projections.live.view_file import LiveFiles
from projections.vectors.client import spare_process

_CREDENTIALS = "KLEDGER_NATS_CREDENTIALS"


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


@dataclass(frozen=True, slots=True)
class Foundation:
    """What a node stands on. `opening` becomes the opened view, and whether it is folded anew from the log."""

    settings: NodeSettings
    environment: NodeEnvironment
    tokens: TokenBook
    sock: socket.socket
    spare: asyncio.subprocess.Process
    access: BrokerAccess
    master: bytes
    vault: JetStreamVault
    in_vault: Count
    """How many records it had as the start found it, with the fingerprint that it then has."""
    keyring: Keyring
    ledger: JetStreamLedger
    head: int
    """Position of the log's last event at the start."""
    parked: ParkedEvents
    files: LiveFiles
    opening: asyncio.Task[tuple[Instance, bool]]
    broker_gone: Callable[[], bool]
    """Whether its broker has ended for good."""


async def begin(settings: NodeSettings, stack: AsyncExitStack, ending: Callable[[], bool]) -> Foundation:
    """Begin all of it; `stack` ends it.

    Raises StoppedAtStart once `ending` is true, DataDirectoryInUse, NodeMisconfigured, InvalidPayload,
    BrokerMisconfigured, BrokerUnavailable.
    """
    host, port = host_and_port(settings.http)
    environment = NodeEnvironment()
    if settings.nats is None and (credentials := os.environ.get(_CREDENTIALS)):
        raise NodeMisconfigured(
            f"{_CREDENTIALS} names {credentials}, and nothing names the broker that it is for: give --nats URL, or "
            "unset it for a broker that the node starts itself"
        )
    check_threads(settings.quack is not None)
    stack.enter_context(private_files())
    stack.enter_context(_only_node_on(settings.data))
    tokens = tokens_for(settings.data, host)
    sock = stack.enter_context(reserved(host, port))
    stack.enter_context(traced(version(PRODUCT)))
    spare = await stack.enter_async_context(spare_process())  # it loads while the broker and the view begin
    access, server = await _broker(settings, stack, ending)
    go_on(ending)
    await ensure_stream(access, replicas=settings.replicas)
    await ensure_keys_bucket(access, replicas=settings.replicas)
    master = await _master_key(access, settings.data)
    vault = await JetStreamVault.open(access, master)
    stack.push_async_callback(vault.close)
    in_vault = await vault.count()
    keyring = Keyring.over(vault, asyncio.get_running_loop())
    ledger = await JetStreamLedger.connect(access, role="node", name="kledger-node")
    stack.push_async_callback(ledger.close)
    go_on(ending)
    head = (await ledger.head()).position
    await vault.bound(head)
    parked = await open_parked(access, replicas=settings.replicas)
    stack.push_async_callback(parked.close)
    go_on(ending)
    files = LiveFiles(settings.data / "views", settings.quack, analysts_of(tokens), keyring, environment.recall_days)
    opening = asyncio.create_task(opened_as_decided(files, ledger, parked), name="view-opening")
    stack.push_async_callback(_end, opening)
    await asyncio.sleep(0)  # its thread begins
    return Foundation(
        settings=settings,
        environment=environment,
        tokens=tokens,
        sock=sock,
        spare=spare,
        access=access,
        master=master,
        vault=vault,
        in_vault=in_vault,
        keyring=keyring,
        ledger=ledger,
        head=head,
        parked=parked,
        files=files,
        opening=opening,
        broker_gone=lambda: server is not None and server.gone,
    )


async def _end(opening: asyncio.Task[tuple[Instance, bool]]) -> None:
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)


async def _broker(
    settings: NodeSettings, stack: AsyncExitStack, ending: Callable[[], bool]
) -> tuple[BrokerAccess, EmbeddedServer | None]:
    """Access to the broker, and the node's own broker, where it has one."""
    if settings.nats is not None:
        credentials = os.environ.get(_CREDENTIALS)
        access = access_with(settings.nats, Path(credentials)) if credentials else BrokerAccess.from_url(settings.nats)
        return access, None
    server = EmbeddedServer(settings.data / "broker")
    server.ending = ending
    access = await unless(ending, server.start())
    stack.push_async_callback(server.stop)
    return access, server


async def _master_key(access: BrokerAccess, data: Path) -> bytes:
    """The master key, created for a new ledger. Raises WrongMasterKey where an existing one is lost."""
    existing = kept_master_key(data)
    if existing is None and await JetStreamVault.is_begun(access):
        raise lost(data)
    return existing or new_master_key(data)


@contextmanager
def _only_node_on(data: Path) -> Iterator[None]:
    """Lock the data directory. Raises DataDirectoryInUse when another node holds it."""
    prepare_data_directory(data)
    with (data / LOCK).open("a+") as file:
        take(file, data)
        with contextlib.suppress(OSError):  # a full disk must not keep a node from starting
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())  # nothing is left for the closing to write
        yield
