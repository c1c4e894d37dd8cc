"""What a job found not intact is kept until it is mended, whatever happens to the file that keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.integrity.audit_evidence import Finding
from ledger.integrity.found import FILE, Found, found, found_by_audit, is_intact, remember
from ledger.integrity.notary_start import NotaryFiles

OF_LOG = Found("audit", "log", "position 4 is missing", "repair it")
OF_VIEWS = Found("verify", "views", "the view recalls differs", "rebuild it")


@pytest.fixture
def files(tmp_path: Path) -> NotaryFiles:
    (tmp_path / "chain").mkdir()
    return NotaryFiles.of(tmp_path)


def told(files: NotaryFiles) -> list[tuple[str, str, str]]:
    return [(one.job, one.part, one.what) for one in found(files)]


def test_what_was_found_last_is_told_until_the_part_is_intact(files: NotaryFiles) -> None:
    assert found(files) == []
    remember(files, OF_LOG)
    remember(files, OF_VIEWS)
    remember(files, Found("audit", "log", "positions 4 to 6 are missing", "repair it"))
    remember(files, Found("backup", "log", "position 4 is missing", "repair it"))
    assert told(files) == [
        ("verify", "views", "the view recalls differs"),
        ("audit", "log", "positions 4 to 6 are missing"),
        ("backup", "log", "position 4 is missing"),
    ]
    assert str(found(files)[0]).endswith("Z: the view recalls differs; rebuild it")
    assert (files.directory / FILE).stat().st_mode & 0o077 == 0
    is_intact(files, "backup")
    is_intact(files, "log")
    assert told(files) == [("verify", "views", "the view recalls differs")]
    is_intact(files, "views")
    assert not (files.directory / FILE).exists()


@pytest.mark.parametrize("content", [b"", b"{", b"7", b'["log"]', b'[{"job": "audit"}]', b"\xff"])
def test_a_file_that_cannot_be_read_is_told_until_the_log_is_intact(files: NotaryFiles, content: bytes) -> None:
    (files.directory / FILE).write_bytes(content)
    (one,) = found(files)
    assert (one.part, one.mend) == ("log", "run kledger audit")
    assert f"chain/{FILE}" in one.what
    assert str(files.directory) not in str(one)
    remember(files, OF_VIEWS)
    assert len(found(files)) == 2
    is_intact(files, "log")
    assert [one.part for one in found(files)] == ["views"]


@pytest.mark.parametrize(
    ("kinds", "mend"),
    [
        (["missing"], "kledger repair --from BACKUP"),
        (["leaves", "changed"], "kledger repair --from BACKUP"),
        (["leaves"], "restart the node"),
        (["checkpoint", "leaves"], "bring the directories chain and keys"),
        (["key"], "bring the directories chain and keys"),
    ],
)
def test_what_an_audit_found_is_told_with_what_mends_it(kinds: list[str], mend: str) -> None:
    one = found_by_audit([Finding(kind, f"a {kind}") for kind in kinds])
    assert one.what == "; ".join(f"a {kind}" for kind in kinds)
    assert mend in one.mend


def test_of_many_findings_the_first_are_told_and_how_many_there_are() -> None:
    one = found_by_audit([Finding("missing", f"position {at} is missing") for at in range(1, 8)])
    assert one.what == "position 1 is missing; position 2 is missing; position 3 is missing; and 4 more"
