"""Who may start a node where, and how does it stop? One a directory, one a port; what is under way is answered."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import partial
from itertools import count
from pathlib import Path

import pytest
import structlog.testing

from kledger.contract.errors import NodeUnreachable
from producers.node.jobs import Jobs
from tests.journeys.running_node import (
    ENVIRONMENT,
    STOPS_WITHIN,
    Importing,
    RunningNode,
    alive,
    assert_kept_once,
    caught_up,
    items,
    result_of,
    running,
    stands_still,
    until,
    up,
)
from tests.processes import started


def refused(data: Path, http: str = "127.0.0.1:0", *more: str) -> str:
    """What a node says that does not start; its exit code has to be 1."""
    ran = started.kledger(*up(data, http, *more))
    assert ran.returncode == 1, (ran.returncode, ran.stderr)
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    return ran.stderr.splitlines()[-1]


def test_a_second_node_is_refused_a_directory_and_a_port_that_are_taken(node: RunningNode, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with node.client() as ledger:
        saved = ledger.save("Close the shutters", "At dusk.", ["plan"], id="shutters", scopes=["public"])
        told = refused(node.data)
        assert "another node runs on" in told
        assert f"(process {node.process.pid})" in told
        assert str(node.data) in told
        assert "data_directory_in_use" in told
        told = refused(elsewhere, node.url.removeprefix("http://"))
        assert "cannot listen on" in told
        assert "--http" in told
        assert "node_misconfigured" in told
        assert "[Errno" not in told
        # neither did any harm, and the refused one left nothing running
        assert ledger.get("shutters")["position"] == saved["position"]
        assert not list((elsewhere / "broker").glob("*.pid"))
        assert alive(node.broker)


@pytest.mark.parametrize(
    ("http", "more", "said"),
    [
        ("0.0.0.0:0", (), "loopback"),
        ("127.0.0.1:0", ("--nats", "http://127.0.0.1:4222"), "nats://"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused_with_what_to_write(
    tmp_path: Path, http: str, more: tuple[str, ...], said: str
) -> None:
    assert said in refused(tmp_path / "data", http, *more)


@pytest.mark.parametrize(
    "setting",
    [
        "KLEDGER_LIMIT_CONNECTIONS=-1",
        "KLEDGER_EXTRACT_AFTER=lunch",
        "KLEDGER_SESSION_IDLE_MINUTES=some",
        "KLEDGER_RERANK_URL=nowhere",
        "KLEDGER_RECALL_DETAIL_DAYS=few",
        "KLEDGER_REACTOR_ACK_WAIT=nan",
    ],
)
def test_a_wrong_setting_is_refused_in_a_sentence_that_names_it(tmp_path: Path, setting: str) -> None:
    variable, _, value = setting.partition("=")
    ran = started.kledger(*up(tmp_path / "data"), environment={**ENVIRONMENT, variable: value})
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    told = ran.stderr.splitlines()[-1]
    assert told.startswith("kledger: ")
    assert told.endswith("(invalid_payload)")
    assert variable[:13] in told  # groups of settings are named by what their names have in common


def test_credentials_of_a_broker_that_nobody_names_start_no_broker_of_the_nodes_own(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "KLEDGER_NATS_CREDENTIALS": str(tmp_path / "credentials.json")}
    ran = started.kledger(*up(tmp_path / "data"), environment=environment)
    assert ran.returncode == 1
    assert "KLEDGER_NATS_CREDENTIALS" in ran.stderr
    assert "give --nats URL" in ran.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("file", ["node.lock", "broker/lock", "broker/port.draft", "broker/nats-server.log"])
def test_a_file_that_cannot_be_used_is_named_in_a_sentence(tmp_path: Path, file: str) -> None:
    data = tmp_path / "data"
    (data / file).mkdir(parents=True)
    told = refused(data)
    assert str(data / file) in told
    assert "cannot be used (Is a directory)" in told
    assert "node_misconfigured" in told


def test_a_node_says_where_a_file_is_though_its_directory_was_named_from_where_it_started(tmp_path: Path) -> None:
    with running(Path(os.path.relpath(tmp_path / "data"))) as node, node.client() as ledger:
        ledger.save("Close the shutters", "At dusk.", ["plan"], scopes=["public"])
        assert Path(result_of(ledger, "snapshot")["file"]).parent == tmp_path / "data" / "snapshots"


def test_a_node_ends_well_though_its_broker_has_just_been_killed(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        with node.client() as ledger:
            ledger.save_many(items(20))
        os.kill(node.broker, signal.SIGKILL)
        assert node.stop() == 0, node.said()
        assert "Traceback" not in node.said()


def held_amid(amid: str, room: Path) -> tuple[Path, Path, started.Process]:
    """The data and the log of a node that stands still amid its start, and its process.

    One that was ready before it was seen there is another try's: a machine may let nobody look for a while.
    """
    for number in count():
        data, log = room / f"data-{number}", room / f"data-{number}.log"
        with log.open("ab") as errors:
            process = started.start(up(data), stderr=errors)
        assert process.stdout is not None
        until(partial(is_at, amid, data, log, process), f"the start is at {amid}")
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGSTOP)
        until(partial(stands_still, process.pid), "it stands still")
        if not select.select([process.stdout], [], [], 0)[0]:  # it has not said that it is ready
            break
        process.kill()
        process.wait()
        process.stdout.close()
    return data, log, process


def is_at(amid: str, data: Path, log: Path, process: started.Process) -> bool:
    """Whether a start has come so far, or to its end."""
    begun = {
        "broker_ready": lambda: '"broker_ready"' in log.read_text(),
        "view": lambda: any((data / "views").glob("*.duckdb")),
        "vectors": lambda: (data / "vectors").is_dir(),
    }
    return begun[amid]() or process.poll() is not None


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("amid", ["broker_ready", "view", "vectors"])
def test_a_node_that_is_stopped_while_it_starts_says_so_at_once_and_is_never_ready(
    tmp_path: Path, kind: signal.Signals, amid: str
) -> None:
    data, log, process = held_amid(amid, tmp_path)
    assert process.stdout is not None
    try:
        process.send_signal(kind)
        process.send_signal(signal.SIGCONT)
        until(lambda: '"stopping"' in log.read_text(), "the node says that it stops", instead=log)
        assert process.wait(STOPS_WITHIN) == 0, log.read_text()
        assert process.stdout.read() == ""  # it has not said that it is ready
    finally:
        if process.poll() is None:
            process.kill()
        process.stdout.close()
    said = log.read_text()
    assert [json.loads(line)["event"] for line in said.splitlines()].count("stopping") == 1
    assert '"ready"' not in said
    assert "Traceback" not in said
    assert not list((data / "broker").glob("*.pid"))
    with running(data) as node, node.client() as ledger:
        ledger.save("Close the shutters", "At dusk.", ["plan"], scopes=["public"])
        caught_up(ledger)


def test_the_end_of_its_terminal_stops_a_node_as_a_service_manager_does(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        vectors = node.children("projections.vectors.process")
        for pid in (node.process.pid, *vectors):  # the whole group of the terminal gets it
            os.kill(pid, signal.SIGHUP)
        assert node.process.wait(STOPS_WITHIN) == 0, node.said()
        assert '"event": "stopped"' in node.said()
        assert "the vector process" not in node.said()  # it ended when it was told to


@pytest.mark.parametrize("outlives", [True, False])
def test_a_node_that_is_started_to_outlive_its_terminal_does(outlives: bool) -> None:
    program = (
        f"import signal; signal.signal(signal.SIGHUP, signal.{'SIG_IGN' if outlives else 'SIG_DFL'}); "
        "from producers.node.start.stopped import SIGNALS; print(signal.SIGHUP in SIGNALS)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(not outlives)


def test_a_stop_amid_an_import_answers_what_is_under_way_and_loses_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    body = json.dumps({"id": "last", "task": "t", "content": "c", "types": ["tool"], "scopes": ["public"]}).encode()
    with running(data) as node:
        importing = Importing(node.url, items(1_000)).start()
        importing.until_acknowledged(100)
        host, _, port = node.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=30) as request:
            start = (
                f"POST /api/knowledge HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
            )
            request.sendall(start.encode())
            assert request.recv(1000).startswith(b"HTTP/1.1 100")  # the node is at work on it
            request.sendall(body[:10])
            node.process.send_signal(signal.SIGTERM)
            until(lambda: '"stopping"' in node.said(), "the node says that it stops")
            importing.end()
            request.sendall(body[10:])
            answer = b""
            while part := request.recv(10_000):  # the node closes what it has answered
                answer += part
        assert answer.startswith(b"HTTP/1.1 201"), answer
        assert node.process.wait(45) == 0, node.said()
        assert isinstance(importing.error, NodeUnreachable)
        assert "a request failed" not in node.said()
    importing.acknowledged["last"] = json.loads(answer.partition(b"\r\n\r\n")[2])["position"]
    with running(data) as again, again.client() as ledger:
        caught_up(ledger)
        assert_kept_once(ledger, importing.acknowledged)
        assert ledger.save_many(importing.payloads)["refused"] == 0
        assert result_of(ledger, "verify")["equal"] is True


async def test_a_job_that_runs_as_the_node_stops_is_no_internal_error() -> None:
    jobs, forever = Jobs(), asyncio.Event()

    async def work(_: object) -> dict[str, object]:
        await forever.wait()
        return {}

    with structlog.testing.capture_logs() as logged:
        job = jobs.start("verify", work)
        await asyncio.sleep(0)
        await jobs.close()
    assert job.state == "failed"  # who waits for it is told what to do
    assert job.error is not None
    assert job.error["code"] == "node_unreachable"
    assert "order it again" in job.error["message"]
    assert [(line["event"], line["log_level"]) for line in logged] == [
        ("verify began", "info"),
        ("verify stopped", "info"),
    ]


def test_a_node_whose_ready_line_nobody_reads_runs_and_stops_well(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = started.start(up(tmp_path / "data"), stderr=errors)
    assert process.stdout is not None
    process.stdout.close()
    try:
        until(lambda: '"event": "ready"' in log.read_text() or process.poll() is not None, "it is ready")
        assert process.poll() is None, log.read_text()
        process.send_signal(signal.SIGTERM)
        process.wait(STOPS_WITHIN)
        assert '"event": "stopped"' in log.read_text()
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait()
