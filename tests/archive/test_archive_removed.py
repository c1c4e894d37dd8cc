"""A directory of the archive that somebody removes is missed by the node, named, and made anew."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from kledger.contract.errors import ServiceFailed
from ledger.archive.known import FILE, directories_in
from ledger.integrity.notary_start import NotaryFiles
from producers.node import archiving
from producers.node.archiving import Archiving
from projections.archive.writing import Written, write_due
from tests.archive.archives import archived, sign
from tests.integrity.logs import ListedLedger
from tests.patience import comes_true
from tests.projections.histories import saved, stored

SIZE, COUNT = 4, 12
LOG = stored([saved(f"k{at}") for at in range(COUNT)])
FIRST = "000000000000001-000000000000004"
ALL = "000000000000001-000000000000012"


@pytest.fixture(autouse=True)
def writer(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The archive's writer, in this process; while `hindered` it fails."""
    state = SimpleNamespace(hindered=False)

    async def write(_access: object, data: Path, signed: int, size: int, **_: object) -> Written:
        if state.hindered:
            raise ServiceFailed("the writer is hindered")
        return await write_due(ListedLedger(LOG), data, signed, size)

    monkeypatch.setattr(archiving, "write_in_own_process", write)
    monkeypatch.setattr(archiving, "LOOK_SECONDS", 0.02)
    return state


@asynccontextmanager
async def node(data: Path) -> AsyncIterator[Archiving]:
    """The part of a running node that keeps its archive, once it knows what is there."""
    notary: Any = SimpleNamespace(certified=SimpleNamespace(position=COUNT), files=NotaryFiles.of(data))
    keeping = Archiving(cast(Any, None), data, notary, SIZE, b"")
    task = asyncio.create_task(keeping.run())
    try:
        yield keeping
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def is_whole(data: Path) -> bool:
    """Whether all is archived, and known."""
    try:
        known = orjson.loads((data / "chain" / FILE).read_bytes())
    except FileNotFoundError:
        return False
    return len(known) == 2 * COUNT // SIZE and {*known} == directories_in(data / "archive")


def named(keeping: Archiving) -> list[tuple[str, str]]:
    return [(each["file"], each["segment"]) for each in keeping.status()["damaged"]]


REMOVED = {
    "columns": [("columns", ALL)],
    "events": [("events", ALL)],
    ".": [("events", ALL), ("columns", ALL)],
    f"columns/{FIRST}": [(f"columns/{FIRST}", FIRST)],
    f"events/{FIRST}": [(f"events/{FIRST}", FIRST)],
}


@pytest.mark.parametrize("removed", REMOVED)
async def test_what_is_removed_while_the_node_runs_is_named_and_made_anew(removed: str, tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: is_whole(tmp_path))
        assert named(keeping) == []
        shutil.rmtree(tmp_path / "archive" / removed)
        await comes_true(lambda: named(keeping))
        await comes_true(lambda: is_whole(tmp_path) and not keeping.missing)
        assert named(keeping) == REMOVED[removed]
        assert keeping.status()["position"] == COUNT
        assert keeping.trouble is None


@pytest.mark.parametrize("removed", REMOVED)
async def test_what_is_removed_while_the_node_is_stopped_is_named_at_its_start(removed: str, tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    async with node(tmp_path):
        await comes_true(lambda: is_whole(tmp_path))
    shutil.rmtree(tmp_path / "archive" / removed)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: named(keeping))
        await comes_true(lambda: is_whole(tmp_path) and not keeping.missing)
        assert named(keeping) == REMOVED[removed]
    async with node(tmp_path) as again:
        await comes_true(lambda: again.status()["segments"] == COUNT // SIZE)
        assert named(again) == []


async def test_what_is_not_made_anew_yet_stays_missing_also_over_a_restart(
    tmp_path: Path, writer: SimpleNamespace
) -> None:
    sign(tmp_path, LOG)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: is_whole(tmp_path))
        writer.hindered = True
        shutil.rmtree(tmp_path / "archive" / "columns")
        await comes_true(lambda: keeping.trouble)
        assert keeping.missing == ["columns"]
    async with node(tmp_path) as again:
        await comes_true(lambda: again.trouble)
        assert (again.missing, named(again)) == (["columns"], [("columns", ALL)])
        writer.hindered = False
        await comes_true(lambda: is_whole(tmp_path) and not again.missing)


@pytest.mark.parametrize("kept", [b'["events/x"]', b'["columns/00000000000000a-000000000000004"]', b'{"a": 1}', b"[5]"])
async def test_a_list_of_what_was_archived_that_cannot_be_read_ends_no_archiving(tmp_path: Path, kept: bytes) -> None:
    sign(tmp_path, LOG)
    (tmp_path / "chain" / FILE).write_bytes(kept)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: is_whole(tmp_path))
        assert (named(keeping), keeping.trouble) == ([], None)


async def test_what_the_node_itself_takes_out_is_not_said_to_be_removed(tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: is_whole(tmp_path))
        for file in (f"events/{FIRST}/events.parquet", f"columns/{FIRST}/manifest.json"):
            await keeping.leave_out([{"segment": FIRST, "file": file, "reason": "a test"}])
            await comes_true(lambda: is_whole(tmp_path))
        assert {each["reason"] for each in keeping.status()["damaged"]} == {"a test"}


async def test_a_damaged_segment_that_the_writer_sets_aside_is_named_as_damaged(tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: is_whole(tmp_path))
        file = tmp_path / "archive" / "events" / FIRST / "events.parquet"
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        shutil.rmtree(tmp_path / "archive" / "columns" / FIRST)
        await comes_true(lambda: len(named(keeping)) == 2)
        await comes_true(lambda: is_whole(tmp_path) and not keeping.missing)
        assert named(keeping) == [(f"columns/{FIRST}", FIRST), (f"events/{FIRST}/events.parquet", FIRST)]


async def test_columns_of_segments_that_are_gone_do_not_stay(tmp_path: Path) -> None:
    await archived(tmp_path, LOG, SIZE)
    shutil.rmtree(tmp_path / "archive" / "events")
    await write_due(ListedLedger(LOG), tmp_path, COUNT, 6)
    there = directories_in(tmp_path / "archive")
    assert len(there) == 4
    assert {name.partition("/")[2] for name in there} == {
        "000000000000001-000000000000006",
        "000000000000007-000000000000012",
    }


@pytest.mark.parametrize("content", [b"", b"{", b"7", b"\xff"])
async def test_a_record_that_cannot_be_read_hinders_nothing(content: bytes, tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    (tmp_path / "chain" / FILE).write_bytes(content)
    async with node(tmp_path) as keeping:
        await comes_true(lambda: keeping.status()["segments"] == COUNT // SIZE)
        await comes_true(lambda: (tmp_path / "chain" / FILE).read_bytes() != content and is_whole(tmp_path))
        assert named(keeping) == []
