"""A backup is the archive and what the log has behind it: what is archived is not written a second time."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import BackupMismatch
from ledger.archive.archived import Archived
from ledger.backup import archived as taking
from ledger.backup.checking import check_backup
from ledger.backup.manifest import load
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import BackedUp, back_up
from ledger.event import StoredEvent
from ledger.integrity.chain import leaf_hashes
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from projections.archive.writing import write_due
from tests.archive.archives import archived
from tests.backup.kept import history, kept_in
from tests.conftest import LoopThread
from tests.integrity.logs import ListedLedger

LOG = history(60)


async def kept(data: Path, directory: Path, log: Sequence[StoredEvent], most: int = 10) -> BackedUp:
    """A run of `kledger backup` on a node with this data directory."""
    signed = SignedLog.of_node(data)
    return await back_up(
        ListedLedger(log), directory, signed=signed, archived=Archived.of_node(data), segment_events=most
    )


async def grown(data: Path, log: Sequence[StoredEvent], size: int) -> None:
    """Sign what is new in a log, and archive it."""
    files = NotaryFiles.of(data)
    files.directory.mkdir(parents=True, exist_ok=True)
    SigningKeys.open(files.keys)
    files.leaves.append(leaf_hashes(log[files.leaves.count :]), files.leaves.count)
    await write_due(ListedLedger(log), data, len(log), size)


def ranges(directory: Path) -> list[tuple[int, int]]:
    """The positions of each file of a backup."""
    return [(one.first, one.last) for one in load(directory).segments]


def segment_file(data: Path, first: int, last: int) -> Path:
    return data / "archive" / "events" / f"{first:015d}-{last:015d}" / "events.parquet"


def whole(directory: Path, log: Sequence[StoredEvent]) -> bool:
    """Whether a backup is undamaged, holds just this log, and has no other file of events."""
    files = {path.name for path in (directory / "events").iterdir()}
    named = {Path(one.file).name for one in load(directory).segments}
    return check_backup(directory).problems == [] and kept_in(directory) == list(log) and files == named


async def test_segments_are_taken_as_they_are_and_the_log_is_read_behind_them(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG, 25)
    done = await kept(data, directory, LOG)
    assert ranges(directory) == [(1, 25), (26, 50), (51, 60)]
    assert (done.position, done.added, done.files, done.segments) == (60, 60, 3, 3)
    for first, last in ((1, 25), (26, 50)):
        file = directory / "events" / f"{first:015d}-{last:015d}.parquet"
        assert file.samefile(segment_file(data, first, last)), "it takes room on the disk once"
    assert whole(directory, LOG)


async def test_a_second_run_leaves_every_segment_alone_and_adds_what_is_new(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG[:50], 25)
    await kept(data, directory, LOG[:50])
    before = {path: path.stat() for path in (directory / "events").iterdir()}
    assert (await kept(data, directory, LOG[:50])).files == 0
    done = await kept(data, directory, LOG)
    assert (done.added, done.files, done.segments) == (10, 1, 3)
    assert {path: path.stat() for path in before} == before
    assert whole(directory, LOG)


async def test_the_small_files_of_many_runs_become_the_segment_that_the_archive_has_since(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    for end in range(4, 41, 4):
        await kept(data, directory, LOG[:end])
    assert len(ranges(directory)) == 10
    await grown(data, LOG[:44], 20)
    done = await kept(data, directory, LOG[:44])
    assert ranges(directory) == [(1, 20), (21, 40), (41, 44)]
    assert (done.added, done.files) == (4, 3)
    assert whole(directory, LOG[:44])


async def test_segments_that_end_elsewhere_wait_until_they_reach_past_the_backup(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    for end in (7, 14, 22):
        await kept(data, directory, LOG[:end], most=50)
    await grown(data, LOG[:22], 20)
    await kept(data, directory, LOG[:24])
    assert ranges(directory) == [(1, 7), (8, 14), (15, 22), (23, 24)]
    await grown(data, LOG[:40], 20)
    await kept(data, directory, LOG[:43])
    assert ranges(directory) == [(1, 20), (21, 40), (41, 43)]
    assert whole(directory, LOG[:43])


async def test_a_large_file_of_an_earlier_backup_is_not_written_again_in_pieces(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await kept(data, directory, LOG[:40], most=40)
    await archived(data, LOG, 20)
    await kept(data, directory, LOG)
    assert ranges(directory) == [(1, 40), (41, 60)]
    assert whole(directory, LOG)


async def test_a_damaged_segment_is_left_and_its_events_come_from_the_log(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG, 20)
    file = segment_file(data, 21, 40)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    await kept(data, directory, LOG, most=100)
    assert ranges(directory) == [(1, 20), (21, 60)]
    assert whole(directory, LOG)


async def test_a_link_in_the_place_of_a_segment_is_not_followed(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG[:20], 20)
    file = segment_file(data, 1, 20)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    await kept(data, directory, LOG[:20], most=100)
    assert not any(path.is_symlink() for path in directory.rglob("*"))
    assert whole(directory, LOG[:20])


async def test_on_another_disk_segments_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG[:20], 20)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refused)
    await kept(data, directory, LOG[:20])
    file = directory / "events" / "000000000000001-000000000000020.parquet"
    assert file.read_bytes() == segment_file(data, 1, 20).read_bytes()
    assert not file.samefile(segment_file(data, 1, 20))
    assert file.stat().st_mode & 0o077 == 0
    assert whole(directory, LOG[:20])


async def test_the_archive_of_another_log_is_not_taken(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, history(61)[1:], 20)
    await kept(data, directory, LOG, most=100)
    assert ranges(directory) == [(1, 60)]
    assert whole(directory, LOG)


async def test_a_backup_of_another_log_is_refused_before_anything_of_the_archive_is_added(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    await archived(data, LOG, 20)
    await back_up(ListedLedger([one._replace(body=b"{}") for one in LOG[:9]]), directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with pytest.raises(BackupMismatch, match="not one of this stream"):
        await kept(data, directory, LOG)
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


async def test_events_that_are_others_than_the_archived_ones_are_not_replaced(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    changed = [*LOG[:3], LOG[3]._replace(body=b"{}"), *LOG[4:15]]
    for end in (5, 10, 15):
        await back_up(ListedLedger(changed[:end]), directory)
    await archived(data, LOG, 20)
    with pytest.raises(BackupMismatch, match="kledger audit"):
        await kept(data, directory, LOG)
    assert kept_in(directory) == changed


async def test_a_run_that_ends_before_the_manifest_names_a_segment_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    for end in (5, 10, 15):
        await kept(data, directory, LOG[:end])
    await archived(data, LOG, 20)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(taking, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            await kept(data, directory, LOG)
    assert (check_backup(directory).problems, kept_in(directory)) == ([], LOG[:15])
    await kept(data, directory, LOG)
    assert ranges(directory) == [(1, 20), (21, 40), (41, 60)]
    assert whole(directory, LOG)


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0, 3, 5, 8])), max_size=8), st.integers(2, 9))
def test_however_log_and_archive_grow_between_runs_a_backup_is_the_log(
    loop: LoopThread, steps: list[tuple[int, int]], most: int
) -> None:
    async def runs(scratch: Path) -> None:
        end = 0
        for more, size in steps:
            end = min(end + more, len(LOG))
            if size and end:
                await grown(scratch / "data", LOG[:end], size)
            await kept(scratch / "data", scratch / "b", LOG[:end], most)
            assert whole(scratch / "b", LOG[:end])

    with tempfile.TemporaryDirectory() as scratch:
        loop.run(runs(Path(scratch)))
