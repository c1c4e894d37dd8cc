"""A restored node has the archive of the one that was backed up, and goes on with its chain without reading the log."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.backup.manifest import load
from ledger.backup.put_back import put_back
from ledger.backup.writing import back_up
from ledger.event import StoredEvent
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.chain_start import beginning
from ledger.integrity.notary_start import NotaryFiles, resume
from projections.archive.reading import Archive
from tests.archive.archives import folded
from tests.backup.kept import backed_up, history, odd_events
from tests.integrity.logs import ListedLedger

LOG = [*history(45), *odd_events(46)]


async def restored(directory: Path, data: Path, log: Sequence[StoredEvent] = LOG, size: int = 20) -> int:
    """What a restore into `data` leaves beside the broker's files."""
    await backed_up(log, directory, segment_events=size)
    return put_back(directory, load(directory), data, fewest=10)


async def test_its_files_are_segments_that_the_new_node_believes(tmp_path: Path) -> None:
    assert await restored(tmp_path / "b", tmp_path / "data") == 3
    archive = Archive.of_node(tmp_path / "data")
    assert await folded(LOG, archive) == await folded(LOG, None)
    assert (archive.there.last, archive.events, archive.damaged) == (51, 51, [])
    kept = sorted((tmp_path / "b" / "events").iterdir())
    there = sorted((tmp_path / "data" / "archive" / "events").glob("*/events.parquet"))
    assert all(one.samefile(other) for one, other in zip(kept, there, strict=True)), "they take room on the disk once"


async def test_its_chain_goes_on_behind_the_backup_without_the_log(tmp_path: Path) -> None:
    await restored(tmp_path / "b", tmp_path / "data")
    files = NotaryFiles.of(tmp_path / "data")
    with ThreadPoolExecutor(1) as worker:
        chain, signed = await resume(ListedLedger([]), files, worker)
    assert chain == Chain.empty().extended(leaf_hashes(LOG))
    assert signed is not None
    assert signed.position == 51
    began = beginning(files)
    assert began is not None
    assert (began.position, began.signed, began.doubtful) == (51, True, False)
    assert "backup" in str(began.accepted)


async def test_files_too_small_or_too_large_for_a_segment_are_left_to_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.backup.put_back.SEGMENT_EVENTS", 25)
    await back_up(ListedLedger(LOG[:5]), tmp_path / "b", segment_events=40)
    await back_up(ListedLedger(LOG[:25]), tmp_path / "b", segment_events=20)
    await back_up(ListedLedger(LOG), tmp_path / "b", segment_events=31)
    assert put_back(tmp_path / "b", load(tmp_path / "b"), tmp_path / "data", fewest=10) == 1
    archive = Archive.of_node(tmp_path / "data")
    assert await folded(LOG, archive) == await folded(LOG, None)
    assert archive.events == 20


async def test_a_node_that_has_signed_before_keeps_its_chain_and_archive(tmp_path: Path) -> None:
    await restored(tmp_path / "b", tmp_path / "data")
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert await restored(tmp_path / "c", tmp_path / "data", LOG[:30]) == 0
    assert {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()} == before


async def test_a_directory_that_cannot_be_written_is_left_to_the_node(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "archive").write_text("in the way")
    assert await restored(tmp_path / "b", tmp_path / "data") == 0
    with ThreadPoolExecutor(1) as worker:
        assert await resume(ListedLedger(LOG), NotaryFiles.of(tmp_path / "data"), worker) == (Chain.empty(), None)


async def test_an_empty_backup_leaves_nothing(tmp_path: Path) -> None:
    assert await restored(tmp_path / "b", tmp_path / "data", []) == 0
    assert not (tmp_path / "data").exists()


async def test_other_users_of_the_machine_read_nothing_of_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "data").mkdir(mode=0o700)
        await restored(tmp_path / "b", tmp_path / "data")
    finally:
        os.umask(before)
    archive = tmp_path / "data" / "archive"
    for path in (archive, *archive.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((tmp_path / "data" / "keys" / "signing.pem").stat().st_mode) == 0o600
