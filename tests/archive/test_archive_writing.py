"""What is signed is archived in whole segments, whatever interrupts that, for its owner's eyes alone."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ledger.archive.segments import segments_in, whole_directory
from ledger.runtime.private import private_files
from projections.archive import writing
from projections.archive.reading import Archive
from projections.archive.writing import is_due, write_due
from tests.archive.archives import archived, files_of, folded, sign
from tests.integrity.logs import ListedLedger
from tests.projections.histories import saved, stored

LOG = stored([saved(f"k{at}") for at in range(10)])


def segments(data: Path) -> list[tuple[int, int]]:
    return [(segment.first, segment.last) for segment in segments_in(data / "archive" / "events")]


async def test_whole_segments_of_what_is_signed_are_written_and_the_rest_waits(tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    for signed, there in ((3, []), (7, [(1, 4)]), (8, [(1, 4), (5, 8)]), (10, [(1, 4), (5, 8)])):
        await write_due(ListedLedger(LOG), tmp_path, signed, 4)
        assert segments(tmp_path) == there
        assert not is_due(tmp_path, signed, 4)


async def test_a_segment_ends_before_its_bodies_are_too_many_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SEGMENT_BYTES", 2 * max(len(event.body) for event in LOG))
    await archived(tmp_path, LOG, 10)
    assert segments(tmp_path) == [(1, 2), (3, 4), (5, 6), (7, 8), (9, 10)]
    assert await folded(LOG, Archive.of_node(tmp_path)) == await folded(LOG, None)


async def test_another_size_of_segments_goes_on_where_the_first_ended(tmp_path: Path) -> None:
    await archived(tmp_path, LOG, 4)
    await write_due(ListedLedger(LOG), tmp_path, 10, 2)
    assert segments(tmp_path) == [(1, 4), (5, 8), (9, 10)]


async def test_what_an_interrupted_writer_left_is_never_read_and_is_removed(tmp_path: Path) -> None:
    sign(tmp_path, LOG)
    draft = tmp_path / "archive" / "events" / "000000000000001-000000000000004.part"
    draft.mkdir(parents=True)
    (draft / "events.parquet").write_bytes(b"half of it")
    assert Archive.of_node(tmp_path).there.last == 0
    await write_due(ListedLedger(LOG), tmp_path, 10, 4)
    assert not [path for path in files_of(tmp_path) if ".part" in str(path)]
    assert await folded(LOG, Archive.of_node(tmp_path)) == await folded(LOG, None)


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fails() -> None:
        with whole_directory(tmp_path / "events" / "a") as draft:
            (draft / "file").write_bytes(b"begun")
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert list((tmp_path / "events").iterdir()) == []


async def test_other_users_of_the_machine_read_nothing_of_it(tmp_path: Path) -> None:
    with private_files():
        await archived(tmp_path / "data", LOG, 4)
    for path in (tmp_path / "data").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
