"""A full disk is told in plain words, by whichever library it was met."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import duckdb
import pytest

from ledger.broker.subprocess_job import carry_out
from ledger.event import JsonObject
from ledger.progress import Progress
from ledger.runtime.no_room import disk_failed, no_room
from producers.node.jobs import run_job
from producers.operations.ports import Job
from producers.tree import writing
from projections.analysts.snapshot import copy_frozen

FULL = OSError(errno.ENOSPC, "No space left on device")
OF_DUCKDB = duckdb.IOException('IO Error: Could not write file "/a/r.duckdb": No space left on device')
OF_A_COMMIT = duckdb.TransactionException(f"TransactionContext Error: Failed to commit: {OF_DUCKDB}")


@pytest.mark.parametrize("error", [FULL, OF_DUCKDB, OF_A_COMMIT])
def test_a_job_that_meets_a_full_disk_answers_so(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    async def work(_order: JsonObject, _progress: Progress) -> JsonObject:
        raise error

    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    asyncio.run(carry_out(work, reports := io.BytesIO()))
    told = json.loads(reports.getvalue())["error"]
    assert told["code"] == "internal_error"
    assert "no room on the disk" in told["message"]
    assert "make room" in told["message"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EROFS, "Read-only file system", "/a/chain"),
        duckdb.IOException('IO Error: Cannot open file "/a/r.duckdb": Read-only file system'),
        OSError(errno.EIO, "Input/output error"),
    ],
)
def test_a_job_that_meets_a_disk_that_failed_answers_so(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Its process ended with a traceback, and whoever had asked was sent to the log of the node."""

    async def work(_order: JsonObject, _progress: Progress) -> JsonObject:
        raise error

    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    asyncio.run(carry_out(work, reports := io.BytesIO()))
    told = json.loads(reports.getvalue())["error"]
    assert told["code"] == "internal_error"
    assert "the disk does not work" in told["message"]
    assert str(error)[:60] in told["message"]


def test_an_export_that_meets_a_full_disk_says_so_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class OnePage:
        def list(self, **_asked: object) -> JsonObject:
            return {"position": 1, "results": [], "next": None}

    def full(*_written: object) -> None:
        raise FULL

    monkeypatch.setattr(writing, "_put", full)
    with pytest.raises(Exception, match="no room on the disk"):
        writing.export_tree(OnePage(), tmp_path / "tree")  # type: ignore[arg-type]
    assert not (tmp_path / "tree").exists()


def test_a_snapshot_that_meets_a_full_disk_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    live = tmp_path / "view.duckdb"
    live.write_bytes(b"view")
    instance: Any = SimpleNamespace(path=live, position=7, bench=SimpleNamespace(con=MagicMock()))

    def half(_from: Path, into: Path) -> None:
        into.write_bytes(b"vi")
        raise FULL

    monkeypatch.setattr("shutil.copyfile", half)
    with pytest.raises(OSError, match="No space left"):
        copy_frozen(instance, tmp_path / "snapshots")
    assert list((tmp_path / "snapshots").iterdir()) == []


def test_a_job_of_the_node_that_meets_a_full_disk_says_so() -> None:
    async def work(_progress: Progress) -> JsonObject:
        raise FULL

    job = Job("snapshot-1", "snapshot")
    asyncio.run(run_job(job, work))
    assert job.error is not None
    assert "no room on the disk" in str(job.error["message"])


def test_what_is_spilled_onto_a_full_disk_is_told_as_one(tmp_path: Path) -> None:
    """By itself DuckDB spills as much as is free on the disk when it begins."""
    with duckdb.connect(config={"temp_directory": str(tmp_path), "memory_limit": "24MB"}) as con:
        con.execute("SET max_temp_directory_size = '1MB'")
        with pytest.raises(duckdb.OutOfMemoryException) as met:
            con.execute("CREATE TEMP TABLE t AS SELECT range AS n, md5(range::VARCHAR) AS text FROM range(1000000)")
    assert "no room on the disk" in str(no_room(met.value))


def test_other_failures_are_not_a_full_disk() -> None:
    assert no_room(OSError(errno.EROFS, "Read-only file system")) is None
    assert disk_failed(OSError(errno.EACCES, "Permission denied")) is None
    assert no_room(ValueError("no")) is None
    assert no_room(OSError(errno.EACCES, "Permission denied")) is None
