"""What a node keeps is its user's alone: files and directories in every part of its work, and the master key."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import InvalidPayload
from kledger.contract.words import StartableJob
from tests.files import entries
from tests.journeys.running_node import RunningNode, caught_up, result_of, running, up
from tests.processes import started

KINDS: tuple[StartableJob, ...] = ("replay", "backup")
SECRET = base64.b64encode(b"the master key of this test here").decode()


@pytest.fixture(autouse=True)
def a_generous_umask() -> Iterator[None]:
    """As most machines have it, and wider."""
    before = os.umask(0)
    yield
    os.umask(before)


def wide(directory: Path) -> list[str]:
    """Everything at and below a directory in which others of the machine may do something."""
    return [f"{path} {status.st_mode:o}" for path, status in entries(directory) if status.st_mode & 0o077]


def kledger(*words: str) -> str:
    ran = started.kledger(*words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def journey(node: RunningNode, tmp_path: Path) -> None:
    """A bit of everything that leaves files."""
    with node.client() as operator:
        bob = operator.acting_as(user="bob")
        saved = bob.save("Deploy", "Deploy on Tuesday.", ["strategy"], id="deploy")
        assert bob.seeing(saved["position"]).search("deploy on tuesday")["results"]
        caught_up(operator)
        assert not wide(node.data), "while it works"
        jobs: list[Any] = ["rebuild", "verify", "snapshot"]
        for job in jobs:
            result_of(operator, job)
        result_of(operator, "replay", to=1, into=str(tmp_path / "replayed.duckdb"))
        result_of(operator, "backup", into=str(tmp_path / "backup"))
        result_of(operator, "forget", subject="user:bob")
    assert not wide(node.data), "after all of it"
    assert not wide(tmp_path / "backup")
    assert not wide(tmp_path / "replayed.duckdb")


def test_nobody_else_on_the_machine_may_read_what_a_node_keeps(tmp_path: Path) -> None:
    data = tmp_path / "below" / "data"
    data.parent.mkdir()
    with running(data, "--quack", "off") as node:
        journey(node, tmp_path)
    assert not wide(data), "once it has stopped"
    kledger("key", "rotate", "--data", str(data))
    kledger("token", "create", "--data", str(data), "--role", "operator", "--name", "desk")
    assert not wide(data), "after commands on its files"
    with running(data, "--quack", "off"):
        assert not wide(data), "started again"


def test_replay_and_backup_refuse_paths_inside_the_data_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, "--quack", "off") as node, node.client() as ledger:
        ledger.acting_as(user="bob").save("Deploy", "Deploy on Tuesday.", ["strategy"])
        (tmp_path / "link").symlink_to(data / "views")
        inside = [
            *(data, data / "x.duckdb", data / "views" / "view-9.duckdb", data / "node.lock", data / "new" / "x.duckdb"),
            *(
                tmp_path / "link" / "x.duckdb",
                data / "views" / ".." / "x",
                tmp_path / "no" / ".." / "data" / "x",
            ),
        ]
        for kind in KINDS:
            for into in inside:
                with pytest.raises(InvalidPayload, match="data directory"):
                    ledger.start_job(kind, into=str(into))
        assert not (data / "x.duckdb").exists()
        assert not (data / "new").exists()
        result_of(ledger, "replay", into=str(tmp_path / "data-beside.duckdb"))


def test_a_command_that_makes_the_data_directory_makes_it_private(tmp_path: Path) -> None:
    kledger("token", "create", "--new", "--data", str(tmp_path / "new"), "--role", "operator", "--name", "desk")
    assert not wide(tmp_path / "new")


def test_what_an_earlier_version_left_readable_is_narrowed_at_start_and_the_log_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data, "--quack", "off") as node, node.client() as ledger:
        ledger.acting_as(user="bob").save("Deploy", "Deploy on Tuesday.", ["strategy"])
        result_of(ledger, "snapshot")
    (data / "notes.txt").write_text("somebody's own")
    for path in [data, *data.rglob("*")]:
        if path.name != "signing.pem":  # with which the start is refused, as it may be stolen
            path.chmod(0o755 if path.is_dir() else 0o644)
    with running(data, "--quack", "off") as node:
        assert wide(data) == [f"{data / 'notes.txt'} 100644"], "what is not the ledger's stays as it is"
        assert "data_directory_narrowed" in node.said()


def test_no_child_of_a_node_has_the_master_key_in_its_environment(tmp_path: Path) -> None:
    hook = tmp_path / "hook.sh"
    hook.write_text(f"#!/bin/sh\nenv > {tmp_path / 'hook.env'}\ncat > /dev/null\n")
    hook.chmod(0o700)
    environment = {"KLEDGER_MASTER_KEY": SECRET}
    options = ("--quack", "off", "--checkpoint-hook", str(hook))
    with (
        running(
            tmp_path / "data", *options, env=environment, cold=True
        ) as node,  # a fork shows that of the fork server
        node.client() as ledger,
    ):
        ledger.acting_as(user="bob").save("Deploy", "Deploy on Tuesday.", ["strategy"])
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in children(node.process.pid)]
        assert len(environments) >= 2, "the broker and the vector process"
        assert not [each for each in environments if SECRET.encode() in each or b"KLEDGER_MASTER_KEY=" in each]
        result_of(ledger, "rebuild")
    assert "PATH=" in (tmp_path / "hook.env").read_text()
    assert SECRET not in (tmp_path / "hook.env").read_text()


def children(pid: int) -> list[int]:
    """Every process below one."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*found, *(grand for child in found for grand in children(child))]


def test_a_lost_master_key_refuses_the_start_before_another_is_made(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = data / "keys" / "master.key"
    with running(data, "--quack", "off") as node, node.client() as ledger:
        ledger.acting_as(user="bob").save("Deploy", "Deploy on Tuesday.", ["strategy"], id="deploy")
    kept = key.read_bytes()
    key.unlink()
    for _ in range(2):
        ran = started.kledger(*up(data, "127.0.0.1:0", "--quack", "off"))
        assert ran.returncode == 1
        assert "wrong_master_key" in ran.stderr
        assert "master.key is not there" in ran.stderr
        assert "a restored node needs a copy from the node that was backed up" in ran.stderr
        assert not key.exists(), "no other was put in its place"
    key.write_bytes(kept)
    with running(data, "--quack", "off") as node, node.client() as ledger:
        assert caught_up(ledger)
        assert ledger.acting_as(user="bob").get("deploy")["content"] == "Deploy on Tuesday."
