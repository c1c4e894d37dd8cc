"""An analyst's statement that asks for more memory than there is fails alone: the process goes on as before."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import IllegalQuery
from projections.analysts import memory_ceiling, memory_watch, quack
from projections.analysts.sql import sql_read_only
from tests.patience import comes_true

if sys.platform == "linux":
    import resource
else:
    pytest.skip("Linux alone tells what is free", allow_module_level=True)

GIB = 2**30
SIZE_OF_A_COLUMN = {
    "a list": "SELECT len(range(n)) FROM (SELECT 400000000 AS n)",
    "a number from a text": "SELECT len(range(CAST(strftime(DATE '2026-01-01', '%y') || '0000000' AS BIGINT)))",
    "a list made longer": "SELECT len(list_resize([1], n)) FROM (SELECT 400000000 AS n)",
    "a text": "SELECT length(repeat(x, 900000)) FROM (SELECT repeat('abc', 1000) AS x)",
}
FEW = "SELECT len(range(n)) AS n FROM (SELECT 1000 AS n)"


OWN = resource.getrlimit(resource.RLIMIT_DATA)


def limit() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_DATA)


@pytest.fixture
async def view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[duckdb.DuckDBPyConnection]:
    """A prepared view on a machine that has two gigabytes free, where a statement is soon forgotten."""
    monkeypatch.setattr(memory_ceiling, "available", lambda: 2 * GIB)
    for door in (memory_watch, quack):
        monkeypatch.setattr(door, "_CEILING_SECONDS", 0.5)
    await comes_true(lambda: limit() == OWN)  # another test's
    connection = duckdb.connect(str(tmp_path / "view.duckdb"), config={"memory_limit": "300MB", "threads": 2})
    quack.prepare(connection)
    yield connection
    connection.close()
    await comes_true(lambda: limit() == OWN)


@pytest.mark.parametrize("statement", SIZE_OF_A_COLUMN.values(), ids=SIZE_OF_A_COLUMN)
async def test_a_step_that_asks_for_more_than_there_is_fails_and_the_next_statement_is_answered(
    view: duckdb.DuckDBPyConnection, statement: str
) -> None:
    with pytest.raises(IllegalQuery, match="more memory than the node has for it"):
        sql_read_only(view, statement)
    assert sql_read_only(view, FEW).to_pylist() == [{"n": 1000}]


async def test_over_quack_it_fails_as_well(view: duckdb.DuckDBPyConnection) -> None:
    address = quack.serve(view)
    with closing(duckdb.connect()) as analyst:
        quack.load_extensions(analyst)
        analyst.execute(address.attach_statement())
        for statement in SIZE_OF_A_COLUMN.values():
            with pytest.raises(duckdb.Error, match="Failed to allocate"):
                analyst.execute("FROM kl.query(?)", [statement]).fetchall()
        assert analyst.execute("FROM kl.query(?)", [FEW]).fetchall() == [(1000,)]
    assert quack.stop(view, address)


async def test_a_process_begun_meanwhile_has_the_limit_of_before(view: duckdb.DuckDBPyConnection) -> None:
    sql_read_only(view, FEW)
    assert limit() != OWN
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    await comes_true(lambda: resource.prlimit(child.pid, resource.RLIMIT_DATA) == OWN)
    await child.communicate(b"\n")


async def test_it_ends_though_nothing_of_the_machine_can_be_read(
    view: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql_read_only(view, FEW)
    assert limit() != OWN

    def no_file() -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(memory_ceiling, "available", no_file)
    await comes_true(lambda: limit() == OWN)
    assert sql_read_only(view, FEW).to_pylist() == [{"n": 1000}]
    monkeypatch.setattr(memory_watch, "_CEILING_SECONDS", 3.0)
    sql_read_only(view, FEW)
    monkeypatch.setattr(memory_ceiling, "available", lambda: 2 * GIB)
    await comes_true(lambda: limit() != OWN)


async def test_a_lower_limit_that_the_process_was_given_stays(view: duckdb.DuckDBPyConnection) -> None:
    lower = (memory_ceiling.taken() + GIB // 2, OWN[1])
    resource.setrlimit(resource.RLIMIT_DATA, lower)
    try:
        sql_read_only(view, FEW)
        assert limit() == lower
        await comes_true(lambda: not memory_ceiling.is_held())
        assert limit() == lower
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, OWN)


def test_what_is_free_is_what_the_machine_has_or_the_least_of_its_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = memory_ceiling.available()
    groups = {"": ("max", 0), "service": (str(GIB), 100), "service/node": (str(4 * GIB), 0)}
    for name, (most, cached) in groups.items():
        folder = tmp_path / "cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "memory.max").write_text(f"{most}\n")
        (folder / "memory.current").write_text(f"{GIB - 400}\n")
        (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text("0::/service/node\n")
    monkeypatch.setattr(memory_ceiling, "_GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(memory_ceiling, "_SELF", tmp_path / "self")
    assert machine > 500
    assert memory_ceiling.available() == 500
