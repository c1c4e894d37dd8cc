"""How many records a vault had, and how many it has lost, stays known until they are back."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ledger.privacy.known_records import Count, Known, brought_back, found_records, keep_known, known_records


def started(keys: Path, found: int) -> int:
    """What a start says is lost that finds so many records, and two that are not counted."""
    known = found_records(keys, Count(found + 2, found))
    keep_known(keys, known)
    return known.lost


def test_a_loss_is_told_as_large_as_it_was_however_much_comes_later(tmp_path: Path) -> None:
    assert started(tmp_path, 100) == 0
    assert started(tmp_path, 90) == 10
    assert started(tmp_path, 95) == 10, "five came, and none of them is back"
    assert started(tmp_path, 200) == 10
    assert started(tmp_path, 198) == 12, "another loss is added"
    assert brought_back(tmp_path, 5) == 7
    assert started(tmp_path, 203) == 7
    assert brought_back(tmp_path, 7) == 0
    assert started(tmp_path, 210) == 0


def test_a_count_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "vault-records").write_bytes(b"7\n")
    assert known_records(tmp_path) == Known(7, 0)
    assert started(tmp_path, 3) == 2, "it counted all of them"
    assert started(tmp_path, 3) == 2, "and none is lost by counting otherwise"
    assert started(tmp_path, 2) == 3


@pytest.mark.parametrize("holds", [b"", b"\0\0", b"many", b"1 2 3", b"9" * 5000, b"-1", b"7 x"])
def test_a_count_that_cannot_be_read_is_none_and_a_start_says_so(tmp_path: Path, holds: bytes) -> None:
    file = tmp_path / "vault-records"
    file.write_bytes(holds)
    assert known_records(tmp_path) == Known()
    with capture_logs() as logged:
        assert started(tmp_path, 5) == 0
    assert [(line["log_level"], line["file"]) for line in logged] == [("warning", str(file))]
    with capture_logs() as logged:
        assert started(tmp_path, 4) == 1
    assert logged == [], "it was counted anew"


def test_a_start_without_a_count_says_nothing_of_it(tmp_path: Path) -> None:
    with capture_logs() as logged:
        assert started(tmp_path, 0) == started(tmp_path, 3) == started(tmp_path, 3) == 0
    assert logged == []
