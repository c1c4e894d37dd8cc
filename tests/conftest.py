"""What every test may ask for: one real broker and one node a worker, a fresh stream and ledger a test."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
import structlog
import typer.main
import typer.testing
from hypothesis import HealthCheck, settings

from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import created_anew, ensure_stream
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.store.in_memory import MemoryLedger
from ledger.store.jetstream import JetStreamLedger
from ledger.stream import Ledger
from ledger.wire.publication import error_code
from tests.empty_views import CREATE_TABLES, copied_from
from tests.every_module import PRODUCT, load_all
from tests.examples import EXPLORES, tries
from tests.journeys.running_node import RunningNode, running
from tests.parsers import connections_again
from tests.patience import PATIENCE
from tests.processes.started import jobs_forked
from tests.temporary_files import OF_THE_SESSION, room
from tests.temporary_files import module_files as module_files

Result = TypeVar("Result")

# No test fails because a machine is slow, and the suite draws the same examples each time: one that fails says
# something of the change that was made. `make properties` draws others. By name, so that hypothesis' own profile for CI
# does not come before it.
settings.register_profile(
    "fixed", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=tries(100)
)
settings.register_profile("random", settings.get_profile("fixed"), derandomize=False, print_blob=True)
settings.load_profile("random" if EXPLORES else "fixed")

os.environ["PYTEST_DEBUG_TEMPROOT"] = room()  # before anything asks pytest for a directory

# Begun first, so that no worker is left with one of them when the others have nothing to do any more.
LONGEST = (
    "tests/browser/test_every_page.py",
    "tests/house/test_docs_run.py",
    "tests/browser/test_journeys.py",
    "tests/projections/test_processes.py",
    "tests/projections/test_recall_packing.py",
    "tests/projections/test_plain_items.py",
    "tests/projections/test_plain.py",
    "tests/memory/test_clock_of_a_replay.py",
    "tests/journeys/test_forgetting.py",
    "tests/attacks/test_forged_seals.py",
    "tests/knowhub/test_mission_rows.py",
    "tests/journeys/test_command.py",
    "tests/attacks/test_leaks.py",
    "tests/attacks/test_openapi.py",
    "tests/attacks/test_forgetting_attacked.py",
    "tests/sessions/test_summaries.py",
    "tests/faults/test_cluster.py",
    "tests/faults/test_killed.py",
    "tests/documents/test_abstracts.py",
    "tests/journeys/test_stuck_statements.py",
    "tests/doors/test_http_repeated_parts.py",
    "tests/attacks/test_claimed_ids.py",
    "tests/documents/test_reading_files.py",
    "tests/journeys/test_import_and_rebuild.py",
    "tests/journeys/test_answers_fit_the_document.py",
    "tests/reactors/test_no_surprise_bill.py",
    "tests/mcp/test_clients.py",
    "tests/journeys/test_integrity.py",
    "tests/reactors/test_killed_models.py",
    "tests/reactors/test_slim_killed.py",
    "tests/faults/test_harness.py",
    "tests/faults/test_files_at_start.py",
    "tests/search/test_vector_process.py",
    "tests/journeys/test_file_form.py",
    "tests/journeys/test_resources.py",
    "tests/attacks/test_leak_work.py",
    "tests/attacks/test_leak_memories.py",
)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """None but the tests' own process for files that are named: it starts at once, and can be debugged.

    Else one more than there are cores: a seventh of the time of two workers on two cores they all waited, for a node or
    a timer, and a twenty-fifth of that of three.
    """
    named = [Path(argument.partition("::")[0]) for argument in config.args]
    return 0 if all(path.is_file() for path in named) else (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Hardly anything is garbage while tests are collected: to look for it takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first; all others keep their order."""
    root = Path(__file__).parents[1]
    turn = {root / file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: turn.get(item.path, len(turn)))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before a property every module of the product is loaded, and nobody looks through them for garbage.

    hypothesis draws constants of the modules that its process has loaded: the examples of a property would depend on
    which tests its worker happened to run before.
    """
    if any(item.get_closest_marker("hypothesis") for item in session.items):
        load_all(PRODUCT)
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_width_of_a_terminal() -> Iterator[None]:
    """Commands print as into a pipe: readline tells a worker of a width that nothing there has."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("COLUMNS", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_command_line() -> Iterator[None]:
    """What is typed is read by one command line, which takes longer to build than most commands to run."""
    built = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as typed:
        typed.setattr(typer.main, "get_command", built)
        typed.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Clients of `http://` use no TLS, yet httpx loads every authority for each, which takes longer than a request."""
    with pytest.MonkeyPatch.context() as clients:
        clients.setattr("httpx._transports.default.create_ssl_context", cache(httpx.create_ssl_context))
        yield


@pytest.fixture(scope="session", autouse=True)
def _copies_of_an_empty_view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """New views are copies of one: each property makes hundreds."""
    directory = tmp_path_factory.mktemp(f"{OF_THE_SESSION}views")
    with pytest.MonkeyPatch.context() as views:
        views.setattr(CREATE_TABLES, copied_from(directory))
        yield


@pytest.fixture(scope="session", autouse=True)
def _connections_of_parsers_again() -> Iterator[None]:
    """A parser has the connection of one before: each property and each desk opens some."""
    with connections_again():
        yield


@pytest.fixture(scope="session", autouse=True)
def _jobs_forked() -> Iterator[None]:
    """Vector processes and other jobs that tests start themselves are forked: each would import the product anew."""
    with jobs_forked():
        yield


class LoopThread:
    """An event loop that runs beside the tests, for what lives longer than one of them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="session-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], timeout: float = PATIENCE) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="session")
def embedded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A real nats-server with the ledger's accounts, shared by the session."""
    loop = LoopThread()
    server = EmbeddedServer(tmp_path_factory.mktemp(f"{OF_THE_SESSION}broker"))
    loop.run(server.start())
    yield server
    loop.run(server.stop())
    loop.close()


@pytest.fixture(scope="session")
def shared_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that no test stops, with whatever the tests before have said to it."""
    with running(tmp_path_factory.mktemp(f"{OF_THE_SESSION}shared") / "data") as node:
        yield node


@pytest.fixture
async def access(embedded_server: EmbeddedServer) -> BrokerAccess:
    """Access to the shared broker, with an empty stream."""
    await remove_streams(embedded_server.access)
    await ensure_stream(embedded_server.access)
    return embedded_server.access


@pytest.fixture
async def admin(access: BrokerAccess) -> AsyncIterator[BrokerConnection]:
    """A connection that may do everything."""
    connection = await BrokerConnection.open(access, "admin", name="test")
    yield connection
    await connection.close()


@pytest.fixture
async def jetstream_ledger(access: BrokerAccess) -> AsyncIterator[JetStreamLedger]:
    """A ledger on an empty stream of the shared broker."""
    ledger = await JetStreamLedger.connect(access)
    yield ledger
    await ledger.close()


@pytest.fixture
async def memory_ledger() -> AsyncIterator[MemoryLedger]:
    """An empty ledger in memory."""
    ledger = MemoryLedger()
    yield ledger
    await ledger.close()


@pytest.fixture(params=["jetstream", "memory"])
async def ledger(request: pytest.FixtureRequest) -> AsyncIterator[Ledger]:
    """An empty ledger of each kind, for what both must do."""
    if request.param == "memory":
        in_memory = MemoryLedger()
        yield in_memory
        await in_memory.close()
        return
    server: EmbeddedServer = request.getfixturevalue("embedded_server")
    await remove_streams(server.access)
    await ensure_stream(server.access)
    on_broker = await JetStreamLedger.connect(server.access)
    yield on_broker
    await on_broker.close()


async def remove_streams(access: BrokerAccess) -> None:
    """Remove every stream of the account, as only admin can; none of them comes back with what it held."""
    connection = await BrokerConnection.open(access, "admin", name="test-clean")
    try:
        for info in (await connection.api("STREAM.LIST")).get("streams") or []:
            config = info["config"]
            await remove_stream(connection, config["name"])
            assert not error_code(await created_anew(connection, config))
            await remove_stream(connection, config["name"])
    finally:
        await connection.close()


async def remove_stream(connection: BrokerConnection, name: str) -> None:
    """Remove one stream."""
    answer = await connection.api(f"STREAM.DELETE.{name}")
    assert not error_code(answer), answer


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command that runs in this process logs to a stderr that is closed after it: no later test logs there."""
    before, root = structlog.get_config(), logging.getLogger()
    handlers = list(root.handlers)
    yield
    if structlog.get_config() != before:
        structlog.configure(**before)
        logging.captureWarnings(False)
        for handler in [each for each in root.handlers if type(each) is logging.StreamHandler]:
            if handler not in handlers:
                root.removeHandler(handler)


@pytest.fixture
def new_saved() -> Callable[..., NewEvent]:
    """Makes events that save an item: `new_saved("id", content="…", expects=0)`."""
    return saved


def saved(entity_id: str = "item-1", *, content: str = "c", **about: Any) -> NewEvent:
    """A saved item."""
    fact = KnowledgeSaved(types=["tool"], task="t", content=content, scopes=["public"], owner="user:ada")
    about.setdefault("actor", "user:ada")
    return NewEvent(fact, entity_id=entity_id, **about)


@pytest.fixture
def broker_directory(tmp_path: Path) -> Path:
    """Where a test keeps a broker of its own."""
    return tmp_path / "broker"
