"""DuckDB gives up the view's file, or has no memory left: the node opens it again, and nobody's read fails."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kledger.contract.errors import ServiceFailed
from ledger.store.in_memory import MemoryLedger
from projections.analysts.quack import load_extensions
from projections.engine.duckdb import open_view
from projections.engine.parking import fold_strictly
from projections.engine.view import Instance, View
from projections.fold_kit import lacking_memory
from projections.live import projector as runner
from projections.live import view_file
from projections.live.files import copy_closed
from projections.live.projector import Projector
from projections.live.view_file import LiveFiles
from tests.patience import PATIENCE, comes_true
from tests.projections.histories import saved


def items(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    return [item for (item,) in cursor.execute("SELECT id FROM knowledge ORDER BY id").fetchall()]


def open_fragile(path: Path, recall_days: int | None, **about: Any) -> duckdb.DuckDBPyConnection:
    """A file that the next checkpoint makes useless: DuckDB's own way to try what a fatal error does."""
    con = open_view(path, recall_days, **about)
    con.execute("SET debug_checkpoint_abort = 'before_header'")
    return con


@asynccontextmanager
async def given_up(
    views: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[MemoryLedger, View, LiveFiles, Projector]]:
    """A view with one item, served to analysts, whose file DuckDB gives up when it is next written."""
    files = LiveFiles(views, 0)
    with monkeypatch.context() as fragile:
        fragile.setattr(view_file, "open_view", open_fragile)
        view = View(files.open_live())
    files.serve(view.instance)
    ledger = MemoryLedger()
    projector = Projector(ledger, view)
    projector.reopen = lambda: files.reopen(view)
    folding = asyncio.create_task(projector.run())
    await view.wait_for((await ledger.append(saved("before"))).position)
    yield ledger, view, files, projector
    folding.cancel()
    await asyncio.gather(folding, return_exceptions=True)
    projector.close()
    files.stop_serving(view.instance)
    view.close()


def asked(attach: str) -> list[Any]:
    """What an analyst finds who attaches now."""
    with contextlib.closing(duckdb.connect()) as analyst:
        load_extensions(analyst)
        analyst.execute(attach)
        return sorted(analyst.execute("FROM kl.query('SELECT id FROM knowledge')").fetchall())


async def test_a_file_that_duckdb_gives_up_is_opened_again_with_all_that_was_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with given_up(tmp_path / "views", monkeypatch) as (ledger, view, files, projector):
        lost = view.instance
        monkeypatch.setattr(runner, "CHECKPOINT_EVERY_EVENTS", 1)  # of which the next one is fatal
        await view.wait_for((await ledger.append(saved("after"))).position)
        async with asyncio.timeout(PATIENCE):
            await view.until(lambda: view.instance is not lost)
        assert await view.ask(items) == ["after", "before"]
        await view.wait_for((await ledger.append(saved("later"))).position)
        assert await view.ask(items) == ["after", "before", "later"]
        assert projector.trouble is None
        assert files.address is not None
        assert await asyncio.to_thread(asked, files.address.attach_statement()) == [
            ("after",),
            ("before",),
            ("later",),
        ]
    again = LiveFiles(tmp_path / "views", None).open_live()  # and so does the next start
    assert again.answer(items) == ["after", "before", "later"]
    again.close()


async def test_a_file_that_is_given_up_while_nothing_is_appended_is_opened_again_for_whoever_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with given_up(tmp_path / "views", monkeypatch) as (ledger, view, _, projector):
        lost = view.instance
        with pytest.raises(duckdb.FatalException):
            lost.con.execute("CHECKPOINT")  # as a snapshot does
        assert await view.ask(items) == ["before"]
        assert view.instance is not lost
        await view.wait_for((await ledger.append(saved("later"))).position)
        assert await view.ask(items) == ["before", "later"]
        assert projector.trouble is None


async def test_a_file_that_cannot_be_opened_again_for_want_of_room_is_opened_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    full = True

    def copy(source: Path, target: Path) -> None:
        if full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy_closed(source, target)

    monkeypatch.setattr(view_file, "copy_closed", copy)
    async with given_up(tmp_path / "views", monkeypatch) as (_, view, _, projector):
        lost = view.instance
        with pytest.raises(duckdb.FatalException):
            lost.con.execute("CHECKPOINT")
        with pytest.raises(ServiceFailed):
            await view.ask(items)
        await comes_true(lambda: "No space left" in str(projector.trouble))
        full = False
        monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", PATIENCE)
        assert await view.ask(items) == ["before"]
        assert view.instance is not lost
        await comes_true(lambda: projector.trouble is None)  # once analysts are served from it, too


ATTACHED = """
import sys, duckdb
from projections.analysts.quack import load_extensions
analyst = duckdb.connect()
load_extensions(analyst)
analyst.execute(sys.argv[1])
print("attached", flush=True)
sys.stdin.read()
"""


async def test_analysts_attach_again_though_a_session_still_holds_the_file_that_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []
    monkeypatch.setattr(view_file, "left_behind", noted.append)
    async with given_up(tmp_path / "views", monkeypatch) as (ledger, view, files, _):
        assert files.address is not None
        before = files.address
        attached = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ATTACHED, before.attach_statement(), stdin=PIPE, stdout=PIPE
        )
        assert attached.stdout is not None
        assert await attached.stdout.readline() == b"attached\n"
        with pytest.raises(duckdb.FatalException):
            view.instance.con.execute("CHECKPOINT")
        await view.wait_for((await ledger.append(saved("after"))).position, PATIENCE)
        found = await asyncio.to_thread(asked, files.address.attach_statement())
        assert found == [("after",), ("before",)]
        assert files.address.token == before.token
        assert bool(noted) == (files.address.port != before.port)
        attached.kill()  # what a session that was open hears of it is the old server's to say
        await attached.wait()


async def test_a_session_reads_on_no_file_that_was_opened_again_and_attaches_at_the_same_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with given_up(tmp_path / "views", monkeypatch) as (ledger, view, files, _):
        assert files.address is not None
        before = files.address
        with contextlib.closing(duckdb.connect()) as analyst:
            load_extensions(analyst)
            analyst.execute(before.attach_statement())
            await files.reopen(view)
            await view.wait_for((await ledger.append(saved("after"))).position, PATIENCE)
            with pytest.raises(duckdb.Error, match="Invalid connection id"):
                analyst.execute("FROM kl.query('SELECT id FROM knowledge')")
        assert files.address == before
        assert await asyncio.to_thread(asked, before.attach_statement()) == [("after",), ("before",)]


async def test_a_view_that_cannot_be_opened_again_is_served_to_analysts_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(_source: Path, _target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with given_up(tmp_path / "views", monkeypatch) as (_, view, files, _):
        assert files.address is not None
        monkeypatch.setattr(view_file, "copy_closed", copy)
        with pytest.raises(OSError, match="No space left"):
            await files.reopen(view)
        assert await asyncio.to_thread(asked, files.address.attach_statement()) == [("before",)]


@pytest.mark.parametrize("kind", [duckdb.OutOfMemoryException, duckdb.FatalException])
async def test_a_question_is_asked_again_while_the_view_cannot_answer(
    kind: type[duckdb.Error], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", PATIENCE)
    view, times = View(Instance(open_view(None))), []

    def question(cursor: duckdb.DuckDBPyConnection) -> list[str]:
        times.append(cursor)
        if len(times) < 4:
            raise kind("Out of Memory Error: failed to allocate data")
        return items(cursor)

    assert await view.ask(question) == []
    assert len(times) == 4
    assert not view.instance.in_use
    view.close()


async def test_who_asks_is_told_when_the_view_cannot_answer_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    view = View(Instance(open_view(None)))

    def question(_: duckdb.DuckDBPyConnection) -> list[str]:
        raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data")

    with pytest.raises(ServiceFailed, match="analysts' statements have taken its memory"):
        await view.ask(question)
    assert not view.instance.in_use
    view.close()


@asynccontextmanager
async def starving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[MemoryLedger, View, Projector, list[bool]]]:
    """A fold that has no memory for as long as the last of the list is true; each try adds it once more."""
    tries = [True]
    fold = fold_strictly

    def fold_with_what_is_left(*arguments: Any) -> Any:
        tries.append(tries[-1])
        if tries[-1]:
            raise duckdb.OutOfMemoryException("Out of Memory Error: failed to allocate data")
        return fold(*arguments)

    monkeypatch.setattr(runner, "fold_strictly", fold_with_what_is_left)
    ledger, view = MemoryLedger(), View(Instance(open_view(None)))
    projector = Projector(ledger, view)
    folding = asyncio.create_task(projector.run())
    await ledger.append(saved("while it starves"))
    yield ledger, view, projector, tries
    folding.cancel()
    await asyncio.gather(folding, return_exceptions=True)
    projector.close()
    view.close()


async def test_a_fold_without_memory_for_a_moment_is_no_trouble_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    async with starving(monkeypatch) as (_, view, projector, tries):
        await comes_true(lambda: len(tries) > 5)
        assert projector.trouble is None
        assert view.position == 0
        tries.append(False)
        await view.wait_for(1, PATIENCE)
        assert await view.ask(items) == ["while it starves"]
        assert projector.trouble is None


async def test_a_fold_without_memory_for_long_is_reported_until_it_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    async with starving(monkeypatch) as (_, view, projector, tries):
        await comes_true(lambda: projector.trouble is not None)
        assert "Out of Memory" in str(projector.trouble)
        tries.append(False)
        await view.wait_for(1, PATIENCE)
        await comes_true(lambda: projector.trouble is None)
