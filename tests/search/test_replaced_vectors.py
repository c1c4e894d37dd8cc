"""The vectors of before are removed whole once others have taken their place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import ServiceFailed
from projections.vectors import generations
from projections.vectors.generations import directory_in_use, discard_others, point_to


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


@pytest.mark.parametrize("at_start", [True, False])
def test_what_something_writes_into_without_end_is_left_to_the_next_start_with_a_line_in_the_log(
    at_start: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, now = tmp_path / "generation-0001", tmp_path / "generation-0002"
    for directory in (before, now):
        directory.mkdir()
    point_to(tmp_path, now)
    clock = iter(range(10_000))

    def meanwhile(path: Path) -> None:
        (path / f"{next(clock)}").touch()
        path.rmdir()

    with monkeypatch.context() as patched, capture_logs() as logged:
        patched.setattr(shutil, "rmtree", meanwhile)
        patched.setattr(generations, "monotonic", lambda: float(next(clock)))
        patched.setattr(generations, "sleep", lambda _: None)
        if at_start:
            assert directory_in_use(tmp_path) == now
        else:  # as in a forgetting, which is not done then
            with pytest.raises(ServiceFailed, match="something writes into them") as told:
                discard_others(tmp_path, now)
            assert str(tmp_path) not in told.value.message, "it is told over HTTP"
    assert [(line["log_level"], line["directory"]) for line in logged] == [("warning", str(before))]
    assert "something writes into it" in logged[0]["event"]
    directory_in_use(tmp_path)
    assert not before.exists()


def test_what_cannot_be_removed_for_good_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "generation-0001").mkdir()

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(PermissionError):
        directory_in_use(tmp_path)
