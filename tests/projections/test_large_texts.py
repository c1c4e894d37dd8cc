"""A view whose texts are larger than what DuckDB may take at once is made, compared and folded all the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import duckdb
import pytest

from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeRevised
from ledger.store.in_memory import MemoryLedger
from projections.engine.digest import digests
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.fold_kit import lacking_memory
from projections.live import more_memory, rebuild, view_file
from projections.live import projector as runner
from projections.live.gathering import Batch
from projections.live.more_memory import digests_of, lacks_memory, limit_of, limit_to, more_than, read_with_memory
from projections.live.projector import Projector
from projections.live.rebuild import rebuild_into
from projections.live.view_file import LiveFiles
from tests.patience import PATIENCE, comes_true
from tests.projections.histories import saved

LITTLE = 24_000_000
TEXT = "knowledge " * 40_000
"""400 KB: a hundred of them, of one vector, are more than LITTLE."""


async def log_of_large_texts(items: int) -> MemoryLedger:
    ledger = MemoryLedger()
    for number in range(items):
        await ledger.append(saved(f"item-{number}", content=f"{number} {TEXT}"))
    return ledger


async def test_a_rebuild_of_texts_that_do_not_fit_is_made_with_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await log_of_large_texts(100)
    with_plenty = await rebuild_into(ledger, tmp_path / "plenty.duckdb")
    monkeypatch.setattr(rebuild, "MEMORY_LIMIT", LITTLE)
    with_little = await rebuild_into(ledger, tmp_path / "little.duckdb")
    assert with_little.views == with_plenty.views
    assert with_little.digest == with_plenty.digest


async def test_where_the_machine_has_no_more_the_rebuild_fails_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = await log_of_large_texts(100)
    monkeypatch.setattr(rebuild, "MEMORY_LIMIT", LITTLE)
    monkeypatch.setattr(more_memory, "_of_the_machine", lambda: LITTLE)
    with pytest.raises(duckdb.Error) as met:
        await rebuild_into(ledger, tmp_path / "little.duckdb")
    assert lacks_memory(met.value)
    assert not (tmp_path / "little.duckdb").exists()


async def test_digests_of_a_view_are_read_with_more_memory_which_it_keeps_for_that_time_alone(tmp_path: Path) -> None:
    await rebuild_into(await log_of_large_texts(100), tmp_path / "view.duckdb")
    con = open_view(tmp_path / "view.duckdb")
    found = digests(con)
    limit_to(con, LITTLE)
    before = limit_of(con)
    with pytest.raises(duckdb.OutOfMemoryException):
        digests(con)
    assert read_with_memory(con.cursor(), digests) == found
    assert limit_of(con) == before
    con.close()


async def test_a_view_in_use_whose_texts_do_not_fit_is_compared_by_a_copy_that_is_removed(tmp_path: Path) -> None:
    await rebuild_into(await log_of_large_texts(100), tmp_path / "view.duckdb")
    con = open_view(tmp_path / "view.duckdb")
    found = digests(con)
    limit_to(con, LITTLE)
    con.execute("SET lock_configuration = true")
    assert digests_of(Instance(con, tmp_path / "view.duckdb")) == found
    con.close()
    assert [file.name for file in tmp_path.iterdir()] == ["view.duckdb"]


@asynccontextmanager
async def folding(views: Path, log: MemoryLedger, *, gives: bool) -> AsyncIterator[tuple[View, Projector]]:
    """A live view that is folded from the log, as a node does; `gives`: it may have more memory."""
    files = LiveFiles(views, None)
    view = View(files.open_live())
    projector = Projector(log, view)
    projector.reopen = partial(files.reopen, view)
    if gives:
        projector.more_memory = files.give_memory
    task = asyncio.create_task(projector.run())
    yield view, projector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    projector.close()
    view.close()


async def log_of_one_large_text(revisions: int) -> MemoryLedger:
    """Small events, each of which makes a version with the whole text."""
    ledger = MemoryLedger()
    await ledger.append(saved("item", content=TEXT))
    for number in range(revisions):
        await ledger.append(NewEvent(KnowledgeRevised(tags={"n": number}), "item", "agent:a"))
    return ledger


@pytest.mark.parametrize("log", [log_of_large_texts, log_of_one_large_text], ids=["many items", "one item"])
async def test_a_live_view_whose_texts_do_not_fit_has_more_memory_and_folds_on(
    log: Callable[[int], Awaitable[MemoryLedger]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    monkeypatch.setattr(runner, "CHECKPOINT_EVERY_EVENTS", 25)
    ledger = await log(100)
    head = (await ledger.head()).position
    monkeypatch.setattr(view_file, "MEMORY", LITTLE)
    async with folding(tmp_path / "views", ledger, gives=True) as (view, projector):
        await view.wait_for(head, PATIENCE)
        await view.wait_for((await ledger.append(saved("later"))).position, PATIENCE)
        assert projector.trouble is None
        assert limit_of(view.instance.con) > LITTLE


@pytest.mark.parametrize(
    "error",
    [
        duckdb.TransactionException("TransactionContext Error: Failed to commit: failed to pin block of size"),
        duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size 716.0 KiB"),
        duckdb.FatalException("FATAL Error: Checkpoint failed: could not allocate block of size 716.0 KiB"),
    ],
    ids=["a commit", "a statement", "a checkpoint"],
)
async def test_what_an_analyst_takes_for_a_while_gives_the_view_no_more_memory_for_good(
    error: duckdb.Error, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    fold = Projector._fold
    lacked: list[Instance] = []

    async def lacks_memory_once(self: Projector, batch: Batch) -> None:
        if not lacked:
            lacked.append(self._view.instance)
            raise error
        await fold(self, batch)

    monkeypatch.setattr(Projector, "_fold", lacks_memory_once)
    ledger = MemoryLedger()
    async with folding(tmp_path / "views", ledger, gives=True) as (view, projector):
        before = limit_of(view.instance.con)
        for number in range(2):
            await view.wait_for((await ledger.append(saved(f"item-{number}"))).position, PATIENCE)
            assert projector.trouble is None
            assert limit_of(view.instance.con) == before
            assert view.instance is not lacked[0], "what was under way in it ended"


async def test_a_live_view_that_may_have_no_more_says_so_and_goes_on_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lacking_memory, "TRIED_FOR_SECONDS", 0.0)
    ledger = await log_of_one_large_text(100)
    monkeypatch.setattr(view_file, "MEMORY", LITTLE)
    async with folding(tmp_path / "views", ledger, gives=False) as (_, projector):
        await comes_true(lambda: projector.trouble is not None)
        assert "memory" in str(projector.trouble).lower()


def test_a_limit_is_raised_as_far_as_the_machine_goes_and_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more_memory, "_of_the_machine", lambda: 5_000)
    assert [more_than(limit) for limit in (1_000, 4_000, 5_000, 6_000)] == [4_000, 5_000, None, None]
    assert [more_than(limit, most=2_000) for limit in (1_000, 2_000)] == [2_000, None]


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block of size 716.0 KiB"), True),
        (duckdb.TransactionException("TransactionContext Error: Failed to commit: failed to pin block of size"), True),
        (duckdb.FatalException("FATAL Error: Checkpoint failed: could not allocate block of size 716.0 KiB"), True),
        (duckdb.OutOfMemoryException("Out of Memory Error: failed to offload: No space left on device"), False),
        (duckdb.TransactionException("TransactionContext Error: Conflict on tuple deletion!"), False),
        (MemoryError(), False),
    ],
)
def test_what_lacks_memory_is_told_from_what_lacks_room_on_the_disk(error: Exception, lacks: bool) -> None:
    assert lacks_memory(error) == lacks
