"""What does whoever runs a node read in its log, and from which level on?"""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.runtime.logs import LEVELS
from tests.journeys.running_node import (
    ENVIRONMENT,
    KLEDGER,
    ROOT,
    STOPS_WITHIN,
    RunningNode,
    alive,
    caught_up,
    result_of,
    running,
    until,
    up,
)
from tests.patience import PATIENCE
from tests.processes import started

PERSON = "user:zelda-quill"


def lines_of(node: RunningNode) -> list[dict[str, Any]]:
    """The whole log: each line a JSON document."""
    return [json.loads(line) for line in node.log.read_text("utf-8").splitlines()]


def events_of(node: RunningNode) -> list[str]:
    return [line["event"] for line in lines_of(node)]


def test_the_log_names_what_an_operator_does_and_who_is_turned_away(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node:
        with node.client() as ledger:
            person = ledger.acting_as(user=PERSON.partition(":")[2])
            person.save("Where the spare key is", "Under the third pot.", ["tool"])
            caught_up(ledger)
            for kind, given in (
                ("rebuild", {}),
                ("backup", {"into": str(tmp_path / "kept")}),
                ("forget", {"subject": PERSON}),
            ):
                result_of(ledger, kind, **given)
        for _ in range(30):
            refused = httpx.get(
                f"{node.url}/api/knowledge", headers={"Authorization": "Bearer nonsense"}, timeout=PATIENCE
            )
            assert refused.status_code == 401
        lines = {line["event"]: line for line in lines_of(node)}
        (ready,) = [line for line in lines_of(node) if line["event"] == "ready"]
        assert (f"http://{ready['http']}", ready["data"]) == (node.url, str(tmp_path / "data"))
        assert {"position", "seconds", "version", "nats", "timestamp"} <= ready.keys()
        for kind in ("rebuild", "backup", "forget"):
            assert {"job", "seconds"} <= lines[f"{kind} done"].keys()
            assert events_of(node).index(f"{kind} began") < events_of(node).index(f"{kind} done")
        assert lines["rebuild done"]["equal"] is True
        turned_away = [line for line in lines_of(node) if line["event"] == "a token is refused"]
        assert [(line["code"], line["path"]) for line in turned_away] == [("unauthenticated", "/api/knowledge")]
    text = node.log.read_text("utf-8")
    assert "zelda" not in text
    assert "third pot" not in text
    assert "nonsense" not in text
    assert events_of(node)[-1] == "stopping" or "stopping" in events_of(node)


def test_a_node_that_is_told_to_stop_with_all_its_processes_starts_none_of_them_again(tmp_path: Path) -> None:
    """As a service manager tells it, and a terminal: the signal goes to each of them."""
    with running(tmp_path / "data") as node:
        with node.client() as ledger:
            ledger.save("t", "content", ["tool"], scopes=["public"])
            caught_up(ledger)
        processes = (node.process.pid, node.broker, node.vectors)
        for pid in processes:
            os.kill(pid, signal.SIGTERM)
        assert node.process.wait(STOPS_WITHIN) == 0
        stopped = lines_of(node)[events_of(node).index("stopping") :]
        assert not [line for line in stopped if "again" in line["event"] or "restart" in str(line)], stopped
        assert not [line for line in stopped if line["level"] == "error"], stopped
        assert "broker_ready" not in [line["event"] for line in stopped]
        assert not any(map(alive, processes))


def test_a_broker_that_is_gone_is_a_line_and_one_when_it_is_back(tmp_path: Path) -> None:
    """However many connections, retries, searches and reads meet it."""
    with running(tmp_path / "data", env={"KLEDGER_LOG_LEVEL": "info"}) as node, node.client(retries=0) as ledger:
        ledger.save("t", "content", ["tool"], scopes=["public"])
        caught_up(ledger)
        os.kill(node.broker, signal.SIGSTOP)  # connected to nobody that answers, then gone
        broker = node.broker
        before = len(lines_of(node))
        for _ in range(5):
            httpx.get(f"{node.url}/api/knowledge/search", params={"q": "content"}, timeout=30)
        os.kill(broker, signal.SIGKILL)
        until(lambda: "broker_connection_back" in events_of(node), "the broker is back")
        caught_up(ledger)
        ledger.search("content")
        counted = Counter(line["event"] for line in lines_of(node)[before:])
        assert counted["broker_connection_lost"] == counted["broker_connection_back"] == 1, counted
        assert sum(counted.values()) < 25, counted
        assert max(counted.values()) <= 5, counted


@pytest.mark.parametrize("stated", ["option", "environment"])
def test_a_level_leaves_out_what_is_below_it(tmp_path: Path, stated: str) -> None:
    more = ["--log-level", "error"] if stated == "option" else []
    env = {"KLEDGER_LOG_LEVEL": "debug" if stated == "option" else "ERROR"}
    with running(tmp_path / "data", *more, env=env) as node, node.client() as ledger:
        assert ledger.status()["healthy"]
    assert lines_of(node) == []


def test_an_unknown_level_is_refused_with_those_there_are(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "KLEDGER_LOG_LEVEL": "loud"}
    ran = started.kledger(*up(tmp_path / "data"), environment=environment)
    assert ran.returncode == 1
    assert all(level in ran.stderr for level in LEVELS)
    assert not (tmp_path / "data").exists()


def test_on_a_terminal_the_lines_are_for_people(tmp_path: Path) -> None:
    """As a script as well as over a pipe: JSON is for programs."""
    main, other = pty.openpty()
    code = (
        "import structlog; from ledger.runtime.logs import log_to_stderr; log_to_stderr(); "
        "structlog.get_logger().info('hello')"
    )
    subprocess.run([KLEDGER[0], "-c", code], stderr=other, check=True, cwd=ROOT, env=ENVIRONMENT, timeout=PATIENCE)
    os.close(other)
    shown = os.read(main, 4096).decode()
    os.close(main)
    assert "hello" in shown
    assert not shown.lstrip().startswith("{")
