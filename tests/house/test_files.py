"""What tests look for in files is found wherever it was written, and no time is spent on what never was."""

from __future__ import annotations

from pathlib import Path

from tests.files import HOLE, contents

MANY = 8 * 2**20


def test_a_file_made_in_advance_is_read_where_it_was_written_at_whatever_place(tmp_path: Path) -> None:
    places = {"first": 0, "over an edge": HOLE - 3, "midst": MANY // 2 + 1, "last": MANY - 4}
    for name, at in places.items():
        with (tmp_path / name).open("wb") as file:
            file.truncate(MANY)
            file.seek(at)
            file.write(b"word")
    (tmp_path / "empty").touch()
    with (tmp_path / "one hole").open("wb") as file:
        file.truncate(MANY)
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    found = {path.name: read for path, read in contents(tmp_path)}
    assert {name for name, read in found.items() if b"word" in read} == {*places}
    assert {*found} - {*places} == {"empty", "one hole", "link"}


def test_what_a_hole_parts_is_not_read_as_one(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.write(b"a" * HOLE)
        file.truncate(MANY)
        file.seek(MANY)
        file.write(b"b" * HOLE)
    ((_, read),) = contents(tmp_path)
    assert b"ab" not in read
    assert (read.count(b"a"), read.count(b"b")) == (HOLE, HOLE)
    assert len(read) < MANY or (tmp_path / "file").stat().st_blocks * 512 > MANY
