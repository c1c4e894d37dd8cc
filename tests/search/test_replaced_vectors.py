"""The vectors of before are removed whole once others have taken their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from projections.vectors.generations import directory_in_use, discard_others


def test_they_are_removed_also_where_their_process_writes_its_last_file_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, now = tmp_path / "generation-0001", tmp_path / "generation-0002"
    for directory in (before, now):
        directory.mkdir()
    remove, writes = shutil.rmtree, ["segment", "log"]

    def meanwhile(path: Path) -> None:
        if not writes:
            return remove(path)
        (path / writes.pop()).touch()
        return path.rmdir()

    monkeypatch.setattr(shutil, "rmtree", meanwhile)
    discard_others(tmp_path, now)
    assert not before.exists()
    assert now.exists()


def test_what_cannot_be_removed_for_good_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generation-0001").mkdir()

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(PermissionError):
        directory_in_use(tmp_path)
