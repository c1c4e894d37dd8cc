"""What does the SDK do when a request fails?"""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from kledger import DEFAULT_URL, AsyncLedgerClient, LedgerClient
from kledger.client import connection
from kledger.client.refusals import BY_CODE
from kledger.client.transport.exchange import ConnectionBroken, R, Request
from kledger.client.transport.exchange import Reply as Answer
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.wire import Wire
from kledger.contract.errors import (
    BrokerUnavailable,
    InvalidPayload,
    LedgerError,
    LogGap,
    NodeUnreachable,
    ServiceFailed,
    ViewBehind,
)
from tests.doors.scripted_node import Asked, Reply, ScriptedNode, scripted_node
from tests.free_ports import free_address
from tests.patience import PATIENCE, comes_true

SAVED = {"id": "k-1", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)
    with scripted_node() as running:
        yield running


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    return f"http://{free_address()}"


@pytest.mark.parametrize("code", sorted(BY_CODE))
async def test_an_error_answer_becomes_the_exception_with_its_code(node: ScriptedNode, code: str) -> None:
    node.refuses("GET /api/knowledge/k-1", code, 422, "what happened", field="x")
    async with AsyncLedgerClient(node.url, retries=0) as ledger:
        with pytest.raises(BY_CODE[code]) as caught:
            await ledger.get("k-1")
    assert type(caught.value) is BY_CODE[code]
    assert (caught.value.code, caught.value.message) == (code, "what happened")
    assert caught.value.details == {"field": "x"}


@pytest.mark.parametrize(
    ("status", "body"), [(200, b"<html>"), (200, b""), (200, b"\x1f\x8b"), (301, b""), (307, b"<a>")]
)
def test_an_answer_that_is_no_document_is_told_as_that_of_another_server(
    node: ScriptedNode, status: int, body: bytes
) -> None:
    for line in ("GET /api/knowledge/k-1", "GET /api/admin/status", "POST /api/admin/rebuild", "POST /api/knowledge"):
        node.says(line, body, status)
    with LedgerClient(node.url, retries=0) as ledger:
        asked: list[Callable[[], object]] = [
            lambda: ledger.get("k-1"),
            ledger.status,
            lambda: ledger.start_job("rebuild"),
        ]
        if body:  # a write may be answered with nothing
            asked.append(lambda: ledger.save("t", "c", ["tool"]))
        for ask in asked:
            with pytest.raises(NodeUnreachable, match=rf"^something else .* status {status} and .*: check the address"):
                ask()


@pytest.mark.parametrize("kind", [LedgerClient, AsyncLedgerClient])
async def test_another_server_at_the_address_is_no_node(kind: Any) -> None:
    with another_server() as url:
        ledger: Any = kind(url)
        for ask in (
            lambda: ledger.get("k-1"),
            lambda: ledger.search("rice"),
            lambda: ledger.save("t", "c", ["tool"]),
            lambda: ledger.retire("k-1", reason="x" * 1000),
            ledger.health,
            lambda: ledger.start_job("rebuild"),
        ):
            with pytest.raises(NodeUnreachable, match=r"^something else than a node answers at") as refused:
                await asyncio.to_thread(ask) if kind is LedgerClient else await ask()
            assert refused.value.details["status"] in (404, 501)
            assert len(refused.value.message) < 450


async def test_a_path_in_the_address_is_named_where_no_node_is_behind_it(node: ScriptedNode) -> None:
    nothing = {"error": {"code": "unknown_route", "message": "there is no /x/api: /openapi.json lists what there is"}}
    node.says("GET /x/api/knowledge/k-1", nothing, 404)
    node.says("GET /ui/api/knowledge/k-1", b"<html>", 404)
    node.says("GET /proxied/api/knowledge/k-1", {"id": "k-1"})
    for path in ("/x", "/ui/"):
        with LedgerClient(node.url + path) as ledger, pytest.raises(NodeUnreachable) as refused:
            await asyncio.to_thread(ledger.get, "k-1")
        async with AsyncLedgerClient(node.url + path) as other:
            with pytest.raises(NodeUnreachable, match=re.escape(refused.value.message)):
                await other.get("k-1")
        assert refused.value.message.startswith(f"at the path {path} of {node.url}{path} there is no node")
        assert f"write {node.url}, unless a proxy" in refused.value.message
    with LedgerClient(f"{node.url}/proxied") as ledger:
        assert (await asyncio.to_thread(ledger.get, "k-1"))["id"] == "k-1"


def test_a_program_that_speaks_no_http_is_told_as_one_and_not_quoted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:

        def greet() -> None:
            caller, _ = broker.accept()
            with caller:
                caller.sendall(b'INFO {"server_id":"NCIBB","auth_required":true} \r\n')
                caller.recv(1 << 16)

        thread = threading.Thread(target=greet)
        thread.start()
        with (
            LedgerClient(f"http://127.0.0.1:{broker.getsockname()[1]}") as ledger,
            pytest.raises(NodeUnreachable, match="what it says is no HTTP: another program answers there") as refused,
        ):
            ledger.get("k-1")
        thread.join()
    assert "server_id" not in refused.value.message
    assert "start one with" not in refused.value.message


@contextmanager
def another_server() -> Iterator[str]:
    """What `python -m http.server` starts."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a test prints its own failure."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("status", [400, 403, 404, 405, 501])
def test_a_refusal_in_no_words_of_the_ledger_is_not_of_a_node(node: ScriptedNode, status: int) -> None:
    for body in (b"<h1>no</h1>", b"[]", b'{"detail":"Not Found"}', b""):
        node.says("GET /api/knowledge/k-1", body, status)
        with (
            LedgerClient(node.url, retries=0) as ledger,
            pytest.raises(NodeUnreachable, match="something else than a node"),
        ):
            ledger.get("k-1")


@pytest.mark.parametrize("word", ["zh\r\nX-Ledger-User: eve", "中文", "é", "fr", ""])
def test_a_language_without_texts_is_refused_where_it_is_said(word: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"language is .*: write zh or en"):
        LedgerClient().in_language(word)


async def test_a_code_that_this_version_does_not_know_is_kept(node: ScriptedNode) -> None:
    node.refuses("GET /api/knowledge/k-1", "from_the_future", 418, "tea")
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(LedgerError) as caught:
            await ledger.get("k-1")
    assert caught.value.code == "from_the_future"


async def test_an_answer_that_is_not_the_ledgers_says_so(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", b"<html>Bad gateway</html>", 502)
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(ServiceFailed, match="status 502") as caught:
            await ledger.get("k-1")
    assert "Bad gateway" in str(caught.value.details["body"])


async def test_a_write_whose_connection_broke_is_sent_again_with_the_same_key(node: ScriptedNode) -> None:
    node.hangs_up("POST /api/knowledge", times=2)
    node.says("POST /api/knowledge", SAVED)
    async with AsyncLedgerClient(node.url) as ledger:
        saved = await ledger.save("t", "c", ["tool"])
    assert saved["position"] == 7
    assert len(node.asked) == 3
    assert len({asked.headers["idempotency-key"] for asked in node.asked}) == 1


async def test_a_write_is_sent_again_when_the_node_lost_its_broker(node: ScriptedNode) -> None:
    node.refuses("POST /api/knowledge", "broker_unavailable", 503)
    node.says("POST /api/knowledge", SAVED)
    async with AsyncLedgerClient(node.url) as ledger:
        assert (await ledger.save("t", "c", ["tool"]))["id"] == "k-1"
    assert len({asked.headers["idempotency-key"] for asked in node.asked}) == 1


async def test_a_view_that_is_behind_is_told_and_not_asked_again(node: ScriptedNode) -> None:
    node.refuses("GET /api/knowledge/k-1", "view_behind", 503)
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(ViewBehind):
            await ledger.get("k-1")
    assert len(node.asked) == 1


async def test_starting_a_job_is_never_sent_twice(node: ScriptedNode) -> None:
    node.hangs_up("POST /api/admin/rebuild")
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(NodeUnreachable):
            await ledger.start_job("rebuild")
    assert len(node.asked) == 1


async def test_an_id_that_no_address_can_hold_is_refused_and_nothing_is_sent(node: ScriptedNode) -> None:
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(InvalidPayload, match="too long") as caught:
            await ledger.get("k" * 100_000)
    assert len(caught.value.message) < 250
    assert node.asked == []


@pytest.mark.parametrize("kind", [LedgerClient, AsyncLedgerClient])
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda ledger: ledger.get("k" * 100_000), "the id"),
        (lambda ledger: ledger.retire("k-1", reason="因" * 8_000), "reason"),
        (lambda ledger: ledger.restore("k" * 70_000, reason="no"), "the id"),
        (lambda ledger: ledger.resources.retire("k-1", reason="因" * 8_000), "reason"),
        (lambda ledger: ledger.documents.delete("k-1", reason="因" * 8_000), "reason"),
        (lambda ledger: ledger.search("因" * 8_000), "query"),
        (lambda ledger: ledger.startup("因" * 8_000), "query"),
        (lambda ledger: ledger.list(types=["因" * 8_000]), "types"),
        (lambda ledger: ledger.lineage("因" * 8_000), "ref"),
    ],
)
async def test_what_makes_an_address_too_long_is_told(node: ScriptedNode, kind: Any, ask: Any, said: str) -> None:
    ledger: Any = kind(node.url)
    instead = "; recall takes a long message" if said == "query" else ""
    with pytest.raises(
        InvalidPayload, match=rf": the address is too long: {said} has to be shorter{instead}$"
    ) as refused:
        await asyncio.to_thread(ask, ledger) if kind is LedgerClient else await ask(ledger)
    assert len(refused.value.message) < 250
    assert node.asked == []


async def test_retries_end(node: ScriptedNode) -> None:
    node.hangs_up("GET /api/knowledge/k-1")
    async with AsyncLedgerClient(node.url, retries=2) as ledger:
        with pytest.raises(NodeUnreachable):
            await ledger.get("k-1")
    assert len(node.asked) == 3


async def test_a_broken_connection_is_tried_again_for_as_long_as_is_stated(node: ScriptedNode) -> None:
    node.hangs_up("POST /api/knowledge", times=40)
    node.says("POST /api/knowledge", SAVED)
    async with AsyncLedgerClient(node.url, retry_for=60) as ledger:
        ledger.wire.connection.answered = False
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(connection, "LONGEST_PAUSE", 0.001)
            assert (await ledger.save("t", "c", ["tool"]))["id"] == "k-1"
    assert len(node.asked) == 41
    assert len({asked.headers["idempotency-key"] for asked in node.asked}) == 1


async def test_the_time_to_try_again_comes_from_the_environment_too(
    nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLEDGER_RETRY_FOR", "0")
    told: list[str] = []
    async with AsyncLedgerClient(nobody) as ledger:
        ledger.wire.connection.waits = told.append
        with pytest.raises(NodeUnreachable):
            await ledger.get("k-1")
    assert told == []  # where nothing is stated it says that it tries for three seconds
    monkeypatch.setenv("KLEDGER_RETRY_FOR", "soon")
    with pytest.raises(InvalidPayload, match="write for example 30"):
        LedgerClient(nobody)


@pytest.mark.parametrize("client", [LedgerClient, AsyncLedgerClient])
def test_the_address_comes_from_the_environment_as_that_of_a_command_does(
    client: type[LedgerClient | AsyncLedgerClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLEDGER_URL", "http://127.0.0.1:8431")
    assert client().wire.connection.address == "http://127.0.0.1:8431"
    assert client("http://127.0.0.1:1").wire.connection.address == "http://127.0.0.1:1"
    for nothing in ("", " "):
        monkeypatch.setenv("KLEDGER_URL", nothing)
        assert client().wire.connection.address == DEFAULT_URL
    monkeypatch.setenv("KLEDGER_URL", "127.0.0.1:8431")
    with pytest.raises(NodeUnreachable, match="no address of a node: write http://"):
        client()


async def test_a_node_that_waits_for_somebody_is_not_asked_again(node: ScriptedNode) -> None:
    node.refuses("POST /api/knowledge", "broker_unavailable", 503, "its disk is full", retryable=False)
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(BrokerUnavailable):
            await ledger.save("t", "c", ["tool"])
    assert len(node.asked) == 1


async def test_what_the_node_refuses_is_refused_at_once(node: ScriptedNode) -> None:
    node.refuses("POST /api/knowledge", "invalid_payload", 422)
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(InvalidPayload):
            await ledger.save("t", "c", ["tool"])
    assert len(node.asked) == 1


def test_where_no_node_runs_the_error_says_how_to_start_one(node: ScriptedNode, nobody: str) -> None:
    with (
        LedgerClient(nobody, retries=1) as ledger,
        pytest.raises(NodeUnreachable, match="start one with: kledger up") as caught,
    ):
        ledger.search("q")
    assert nobody in caught.value.message
    assert nobody.removeprefix("http://") in caught.value.message.partition("kledger up --http ")[2]


@pytest.mark.parametrize(
    ("failure", "url", "said"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "http://legder.example:8420",
            "(nobody knows a host 'legder.example'); check the address",
        ),
        (
            ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"),
            "https://127.0.0.1:8420",
            "try http://127.0.0.1:8420",
        ),
    ],
)
async def test_an_address_at_which_nothing_will_answer_is_told_at_once(failure: OSError, url: str, said: str) -> None:
    asked = 0

    def nothing(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        raise httpx.ConnectError(str(failure)) from failure

    def client(**more: Any) -> AsyncLedgerClient:
        http = httpx.AsyncClient(base_url=url, transport=httpx.MockTransport(nothing))
        return AsyncLedgerClient.over(Wire(connection.Connection(url, transport=HttpxTransport.over(http), **more)))

    async with client() as ledger:
        with pytest.raises(NodeUnreachable) as caught:
            await ledger.get("k-1")
    assert said in caught.value.message
    assert "kledger up" not in caught.value.message
    assert asked == 1
    async with client(retry_for=30.0, retries=1) as ledger:  # the time is stated: a container's name comes with it
        with pytest.raises(NodeUnreachable):
            await ledger.get("k-1")
    assert asked == 3


async def test_an_address_that_takes_no_connection_is_given_up_in_seconds() -> None:
    for timeout, expected in ((600.0, 5.0), (0.5, 0.5)):
        carrier = connection.Connection("http://127.0.0.1:1", timeout=timeout).carrier
        assert isinstance(carrier, HttpxTransport)
        assert carrier.http.timeout.connect == expected


@pytest.mark.parametrize(
    ("url", "todo"),
    [
        ("http://127.0.0.1:8420", "; start one with: kledger up"),
        ("http://localhost:8422", "; check the address, or start one with: kledger up --http localhost:8422"),
        ("http://[::1]:8422/", "; check the address, or start one with: kledger up --http [::1]:8422"),
        ("http://127.0.0.1", "; an address has a port, as http://127.0.0.1:8420 has; start one with: kledger up"),
        ("http://10.0.0.7:8420", "; check the address, or start one with: kledger up, on that machine"),
    ],
)
async def test_where_nothing_answers_the_error_says_what_to_do_about_that_address(url: str, todo: str) -> None:
    def nothing(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no") from ConnectionRefusedError()

    http = httpx.AsyncClient(base_url=url, transport=httpx.MockTransport(nothing))
    async with AsyncLedgerClient.over(
        Wire(connection.Connection(url, retries=0, transport=HttpxTransport.over(http)))
    ) as ledger:
        with pytest.raises(NodeUnreachable) as caught:
            await ledger.get("k-1")
    assert caught.value.message == f"no node answers at {url} (connection refused){todo}"


async def test_who_waits_is_told_once_for_what(nobody: str) -> None:
    told: list[str] = []
    async with AsyncLedgerClient(nobody, retries=2) as ledger:
        ledger.wire.connection.waits = told.append
        with pytest.raises(NodeUnreachable):
            await ledger.get("k-1")
    assert told == [f"no node answers at {nobody} (connection refused); trying for 3 seconds"]


@pytest.mark.parametrize("url", ["ftp://127.0.0.1:1", "http://[::1", "not an address", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_told_as_such(url: str) -> None:
    with pytest.raises(NodeUnreachable, match="write http://HOST:PORT"):
        LedgerClient(url)


async def test_a_node_that_does_not_answer_in_time_is_told(nobody: str) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with AsyncLedgerClient(url, timeout=0.05) as ledger:
            with pytest.raises(NodeUnreachable, match=r"no answer within 0\.05 s"):
                await ledger.search("q")


MAY_BE_DONE = "may be done all the same: look before you ask for it again"
CHANGING: dict[str, Callable[[LedgerClient], object]] = {
    "a save": lambda ledger: ledger.save("t", "c", ["tool"]),
    "a memory": lambda ledger: ledger.remember("c"),
    "a job": lambda ledger: ledger.start_job("verify"),
}
ASKING: dict[str, Callable[[LedgerClient], object]] = {
    "a search": lambda ledger: ledger.search("q"),
    "a recall": lambda ledger: ledger.recall("q"),
}


@pytest.mark.parametrize("what", [*CHANGING, *ASKING])
def test_of_a_change_without_an_answer_in_time_it_is_said_that_it_may_be_done(what: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with LedgerClient(url, timeout=0.05) as ledger, pytest.raises(NodeUnreachable) as caught:
            (CHANGING | ASKING)[what](ledger)
    assert "no answer within 0.05 s" in caught.value.message
    assert "start one" not in caught.value.message, "something listens there"
    assert (MAY_BE_DONE in caught.value.message) == (what in CHANGING)
    assert caught.value.details.get("may_be_done", False) == (what in CHANGING)


def test_of_a_change_whose_node_went_while_it_was_asked_it_is_said_that_it_may_be_done() -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def takes_one_and_goes() -> None:
        taken, _ = listening.accept()
        with listening, taken:
            taken.recv(65_536)

    there = threading.Thread(target=takes_one_and_goes)
    there.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with LedgerClient(url, retry_for=1.0) as ledger:
        with pytest.raises(NodeUnreachable, match=MAY_BE_DONE) as caught:
            ledger.save("t", "c", ["tool"])
        there.join()
        assert "connection refused" in caught.value.message
        with pytest.raises(NodeUnreachable, match="start one with") as never_sent:
            ledger.save("t", "c", ["tool"])
    assert MAY_BE_DONE not in never_sent.value.message


class Holding(ScriptedNode):
    """Answers nothing before somebody has given up."""

    held = False

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.given_up = threading.Event()

    def reply(self, asked: Asked) -> Reply:
        self.held = True
        self.given_up.wait(PATIENCE)
        return super().reply(asked)


WAITING: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a position": ("GET /api/knowledge/k-1", lambda ledger: ledger.seeing(7, wait=PATIENCE).get("k-1")),
    "a rewrite": ("PUT /api/knowledge/k-1", lambda ledger: ledger.evolve("k-1", "shorter", wait=PATIENCE)),
    "a slim": ("POST /api/knowledge/slim", lambda ledger: ledger.slim(wait=PATIENCE)),
    "a decision": ("POST /api/slims/s-1/apply", lambda ledger: ledger.slim_apply("s-1", wait=PATIENCE)),
    "what was begun": ("GET /api/slims/s-1", lambda ledger: ledger.slim_get("s-1", wait=PATIENCE)),
}


@pytest.mark.parametrize("waits", ["on a loop", "on a thread"])
@pytest.mark.parametrize("what", WAITING)
async def test_a_wait_that_a_call_states_is_not_cut_by_the_time_of_the_client(what: str, waits: str) -> None:
    line, call = WAITING[what]
    with scripted_node(Holding) as node:
        assert isinstance(node, Holding)
        node.says("GET /api/knowledge/impatient", {})
        node.says(line, {"id": "s-1", "done": True})
        async with AsyncLedgerClient(node.url, timeout=0.05) as ledger:
            with LedgerClient(node.url, timeout=0.05) as blocking:
                if waits == "on a loop":
                    patient = asyncio.ensure_future(call(ledger))
                else:
                    patient = asyncio.ensure_future(asyncio.to_thread(call, blocking))
                await comes_true(lambda: patient.done() or node.held)
                with pytest.raises(NodeUnreachable, match=r"no answer within 0\.05 s"):
                    await ledger.get("impatient")
                node.given_up.set()
                assert (await patient)["id"] == "s-1"


async def test_a_slim_is_looked_at_again_until_the_wait_for_it_is_over(node: ScriptedNode) -> None:
    for done in (False, False, True):
        node.says("GET /api/slims/s-1", {"id": "s-1", "done": done})
    async with AsyncLedgerClient(node.url) as ledger:
        assert (await ledger.slim_get("s-1", wait=0.0))["done"] is False
        assert (await ledger.slim_get("s-1", wait=600.0))["done"] is True


async def test_an_unhealthy_node_is_an_answer(node: ScriptedNode) -> None:
    node.says("GET /health", {"healthy": False, "reasons": ["the projector stands"]}, 503)
    async with AsyncLedgerClient(node.url) as ledger:
        assert (await ledger.health())["reasons"] == ["the projector stands"]


def _job(state: str, done: int, **more: Any) -> dict[str, Any]:
    rest = {"total": 10, "rate": 5.0, "result": None, "error": None}
    return {"id": "j-1", "kind": "verify", "state": state, "done": done, **rest, **more}


async def test_waiting_for_a_job_tells_each_step_and_returns_the_result(node: ScriptedNode) -> None:
    for done in (1, 6):
        node.says("GET /api/admin/jobs/j-1", _job("running", done))
    node.says("GET /api/admin/jobs/j-1", _job("done", 10, result={"equal": True}))
    steps: list[int] = []
    async with AsyncLedgerClient(node.url) as ledger:
        job = await ledger.wait_job("j-1", lambda seen: steps.append(seen["done"]))
    assert steps == [1, 6, 10]
    assert job["result"] == {"equal": True}


async def test_a_job_that_failed_raises_its_error(node: ScriptedNode) -> None:
    failed = {"code": "log_gap", "message": "positions 4 to 6 are missing", "details": {"from": 4}}
    node.says("GET /api/admin/jobs/j-1", _job("failed", 4, error=failed))
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(LogGap, match="positions 4 to 6"):
            await ledger.wait_job("j-1")


async def test_waiting_for_a_job_ends_in_time(node: ScriptedNode) -> None:
    node.says("GET /api/admin/jobs/j-1", _job("running", 1))
    async with AsyncLedgerClient(node.url) as ledger:
        with pytest.raises(TimeoutError):
            await ledger.wait_job("j-1", timeout=0.2)


def test_a_client_that_is_closed_says_so_and_so_do_those_derived_from_it(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    with LedgerClient(node.url) as ledger:
        ann = ledger.acting_as(user="ann")
        assert ann.get("k-1")["id"] == "k-1"
    for asked in (lambda: ledger.get("k-1"), lambda: ann.get("k-1"), ledger.__enter__, ann.profiles.both):
        with pytest.raises(RuntimeError, match="this client is closed"):
            asked()
    ledger.close()
    assert ledger.written == 0, "what it had seen may be read on"


async def test_an_async_client_that_is_closed_says_so(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    async with AsyncLedgerClient(node.url) as ledger:
        assert (await ledger.get("k-1"))["id"] == "k-1"
    with pytest.raises(RuntimeError, match="this client is closed"):
        await ledger.acting_as(user="ann").get("k-1")
    with pytest.raises(RuntimeError, match="this client is closed"):
        async with ledger:
            pass
    await ledger.aclose()


@pytest.mark.parametrize("to", ["nobody", "another program", "a path of another program", "no address"])
async def test_a_password_in_the_address_stands_in_no_error(node: ScriptedNode, nobody: str, to: str) -> None:
    host = node.url.removeprefix("http://")
    node.says("GET /api/knowledge/k-1", b"<html>", status=404)
    node.says("GET /ui/api/knowledge/k-1", b"<html>", status=404)
    url = {
        "nobody": nobody.replace("://", "://ann:secret@"),
        "another program": f"http://ann:secret@{host}",
        "a path of another program": f"http://ann:secret@{host}/ui",
        "no address": f"ftp://ann:sec/ret@secret@{host}",
    }[to]
    with pytest.raises(NodeUnreachable) as failure:
        async with AsyncLedgerClient(url, retry_for=0) as ledger:
            await ledger.get("k-1")
    told = repr((failure.value.message, failure.value.details))
    assert "sec" not in told
    assert "ann" not in told
    assert nobody.removeprefix("http://") in told or host in told


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://ledger.example"])
@pytest.mark.parametrize("kind", [LedgerClient, AsyncLedgerClient])
def test_a_client_that_has_not_asked_yet_goes_to_another_process(
    kind: type[LedgerClient | AsyncLedgerClient], url: str
) -> None:
    client = kind(url, token="secret").acting_as(user="ann")
    for other in (copy.deepcopy(client), pickle.loads(pickle.dumps(client))):
        assert other.wire == client.wire
        assert other.wire.connection is not client.wire.connection


def test_a_client_that_has_asked_goes_to_another_process_and_opens_connections_of_its_own(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    with LedgerClient(node.url) as ledger:
        ann = ledger.acting_as(user="ann")
        ann.get("k-1")
        others = copy.deepcopy(ann), pickle.loads(pickle.dumps(ann))
    for other in others:  # each is closed for itself
        assert other.get("k-1")["id"] == "k-1"
        other.close()
    assert [asked.headers["x-ledger-user"] for asked in node.asked] == ["ann"] * 3


async def test_an_async_client_that_has_asked_goes_to_another_process_too(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    async with AsyncLedgerClient(node.url) as ledger:
        await ledger.get("k-1")
        others = copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))
    for other in others:
        async with other:
            assert (await other.get("k-1"))["id"] == "k-1"


class Queued:
    """A transport whose requests wait for their turn, and whose node breaks off twice before it answers."""

    def __init__(self, turn: float) -> None:
        self.now, self._turn, self._fails = 100.0, turn, 2

    def monotonic(self) -> float:
        return self.now

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        self.now += self._turn
        yield

    async def exchange(self, request: Request) -> Answer:
        if self._fails:
            self._fails -= 1
            raise ConnectionBroken("gone")
        return Answer(200, b'{"id": "k-1"}', request.path, "")

    async def pause(self, seconds: float) -> None:
        self.now += seconds

    async def beside(self, work: Callable[[], R]) -> R:
        return work()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("turn", [0.0, 3 * connection.RETRY_FOR])
async def test_a_call_that_waited_for_its_turn_is_sent_again_for_as_long_as_any(
    turn: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = Queued(turn)
    monkeypatch.setattr(connection, "time", queue)
    wire = connection.Connection(transport=queue, answered=True)
    answer = await wire.send("GET", "/api/knowledge/k-1", params={}, headers={}, repeatable=True)
    assert answer.status == 200
