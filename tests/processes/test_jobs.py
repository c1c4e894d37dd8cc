"""A process that reports on its standard output reports there alone: what it logs or prints is on standard error."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from kledger.contract.errors import LogGap, ServiceFailed
from ledger.backup.process import back_up_in_own_process
from ledger.broker import subprocess_job
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import created, stream_config
from ledger.broker.subprocess_job import in_own_process
from ledger.event import NewEvent
from ledger.store.jetstream import JetStreamLedger
from ledger.wire.publication import error_code
from tests.house.project import PACKAGES, ROOT, modules
from tests.processes.noise import KINDS

FOR_PEOPLE = {"kledger.__main__", "producers.cli.main", "producers.cli.demo"}
"""Programs whose standard output a person reads."""


def programs() -> list[str]:
    """The modules of the product that are run as programs, `python -m` MODULE."""
    found = []
    for path in modules(PACKAGES):
        text = path.read_text("utf-8")
        if "__main__" not in text:  # sooner said than parsed
            continue
        tests = [node.test for node in ast.parse(text).body if isinstance(node, ast.If)]
        if any(ast.unparse(test) == "__name__ == '__main__'" for test in tests):
            found.append(".".join(path.relative_to(ROOT).with_suffix("").parts))
    return found


JOBS = sorted({*programs()} - FOR_PEOPLE)


def test_the_jobs_are_found() -> None:
    assert {*programs()} > FOR_PEOPLE
    assert {"ledger.backup.process", "projections.vectors.process", "producers.documents.child"} < {*JOBS}


@pytest.mark.parametrize("module", JOBS)
def test_what_a_job_logs_and_prints_is_not_on_its_standard_output(module: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.processes.noise", module],
        input=b"{}\n",
        capture_output=True,
        cwd=ROOT,
        check=False,  # the order is none: what it comes to is another matter
    )
    assert b"noise" not in ran.stdout
    assert [kind for kind in KINDS if f"noise {kind}".encode() not in ran.stderr] == []


async def test_the_report_of_a_loud_job_arrives_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    told: list[tuple[int, int, float]] = []
    result = await in_own_process("tests.processes.loud_job", {"said": "记" * 200_000}, lambda *each: told.append(each))
    assert result == {"heard": "记" * 200_000}
    assert told == [(1, 2, 3.0)]


async def test_a_job_that_hangs_is_killed_when_it_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(subprocess_job, "_ENDS_WITHIN_S", 0.1)
    begun = asyncio.Event()
    order = {"ends_by": "hanging"}
    job = asyncio.create_task(in_own_process("tests.processes.failing_job", order, lambda *_: begun.set()))
    await begun.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job


async def test_a_job_that_is_killed_as_it_writes_its_result_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(ServiceFailed, match="ended without a result"):
        await in_own_process("tests.processes.failing_job", {"ends_by": "a kill"}, lambda *_: None)


@pytest.fixture
async def damaged(
    access: BrokerAccess, admin: BrokerConnection, new_saved: Callable[..., NewEvent]
) -> AsyncIterator[None]:
    """A stream of ten events that lost the fourth."""
    await admin.api("STREAM.DELETE.LEDGER")
    assert not error_code(await created(admin, {**stream_config(), "deny_delete": False}))
    writing, reading = [await BrokerConnection.open(access, "node") for _ in range(2)]
    ledger = JetStreamLedger(writing, reading)
    await ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    assert not error_code(await admin.api("STREAM.MSG.DELETE.LEDGER", {"seq": 4}))
    assert not error_code(await admin.api("STREAM.UPDATE.LEDGER", stream_config()))
    yield
    await ledger.close()


@pytest.mark.usefixtures("damaged")
async def test_a_backup_of_a_damaged_log_ends_with_what_is_missing(
    access: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLEDGER_LOG_LEVEL", "debug")  # the reader says that it begins anew behind what it has
    with pytest.raises(LogGap) as gap:
        await back_up_in_own_process(access, str(tmp_path / "backup"), tmp_path / "data", lambda *_: None)
    assert (gap.value.details["first"], gap.value.details["last"]) == (4, 4)
