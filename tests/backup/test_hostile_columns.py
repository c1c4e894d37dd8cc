"""Columns of a backup that somebody else may write to: what its manifests say leads nowhere but into its directory."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from kledger.contract.errors import BackupDamaged
from ledger.archive.columns_manifest import files_in, read_columns_manifest
from ledger.archive.manifest import NotBelieved, write_manifest
from ledger.archive.segments import Segment
from ledger.backup.checking import check_backup, intact
from ledger.backup.fetching import fetch
from ledger.backup.manifest import load, save
from ledger.backup.place import Directory
from ledger.events import FACTS
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, public_keys
from tests.backup.kept import backed_up, history

SEGMENT = Segment(1, 20)
CONTENT = b"what somebody else wants there"
DIGEST = sha256(CONTENT).hexdigest()
ELSEWHERE = "../../../elsewhere"

NO_DIGESTS: tuple[object, ...] = (None, 5, [], {}, "", "x", DIGEST.upper(), DIGEST + "\n")
NO_FILES: tuple[object, ...] = (None, [], ["a"], {"a": None}, {"a": {}}, {"a": {"sha256": 5}})
NO_MANIFESTS = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"5",
    b"{}",
    *(orjson.dumps({"files": files}) for files in NO_FILES),
    *(
        orjson.dumps({"files": {name: {"sha256": DIGEST}}})
        for name in (ELSEWHERE, "/elsewhere", "", ".", "..", "a/b", "a\0b", "a\n", "A", "a" * 101, "å")
    ),
    orjson.dumps({"files": {"a": {"sha256": DIGEST.upper()}}}),
)


@pytest.fixture
async def backup(tmp_path: Path) -> Path:
    await backed_up(history(50), tmp_path / "b", segment_events=20)
    return tmp_path / "b"


def with_columns(backup: Path, manifest: bytes) -> None:
    """Let a backup name columns of its first file with this manifest."""
    directory = backup / "columns" / SEGMENT.name
    directory.mkdir(parents=True)
    (directory / "manifest.json").write_bytes(manifest)
    save(backup, load(backup).with_columns({SEGMENT.name: sha256(manifest).hexdigest()}))


@pytest.mark.parametrize("manifest", NO_MANIFESTS)
def test_a_manifest_of_columns_that_is_none_is_named_and_costs_nothing(
    manifest: bytes, backup: Path, tmp_path: Path
) -> None:
    with_columns(backup, manifest)
    (tmp_path / "elsewhere.parquet").write_bytes(CONTENT)
    (problem,) = check_backup(backup).problems
    assert f"columns/{SEGMENT.name}/manifest.json" in problem
    assert "decodes" in problem
    assert intact(backup).position == 50
    fetch(Directory(backup), tmp_path / "fetched", columns=True)
    assert load(tmp_path / "fetched").columns == {}


def test_no_file_is_written_outside_of_what_is_fetched(backup: Path, tmp_path: Path) -> None:
    with_columns(backup, orjson.dumps({"files": {ELSEWHERE: {"sha256": DIGEST}}}))
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "elsewhere.parquet").write_bytes(CONTENT)
    fetch(Directory(backup), data / "fetched-backup", columns=True)
    assert {path.name for path in data.iterdir()} == {"fetched-backup"}


def test_one_that_a_trusted_key_signed_names_no_file_elsewhere_either(tmp_path: Path) -> None:
    directory, files = tmp_path / "columns" / SEGMENT.name, NotaryFiles.of(tmp_path)
    directory.mkdir(parents=True)
    files.directory.mkdir()
    keys = SigningKeys.open(files.keys)
    said = {"part": "columns", "first": SEGMENT.first, "last": SEGMENT.last, "leaves": "those"}
    for name in ("knowledge.saved.sealed", ELSEWHERE):
        write_manifest(directory, {**said, "files": {name: {"sha256": DIGEST}}}, keys)
        if name == ELSEWHERE:
            with pytest.raises(NotBelieved, match="elsewhere"):
                read_columns_manifest(tmp_path, SEGMENT, "those", public_keys(files.keys))
        else:
            assert files_in(read_columns_manifest(tmp_path, SEGMENT, "those", public_keys(files.keys))) == {
                f"{name}.parquet": DIGEST
            }


def test_the_name_of_every_fact_is_one_of_a_file() -> None:
    names = [f"{fact}{part}" for fact in FACTS for part in ("", ".sealed")] + ["words"]
    assert len(files_in({"files": {name: {"sha256": DIGEST} for name in names}})) == len(names)


@pytest.mark.parametrize(
    "columns",
    [
        [],
        [SEGMENT.name],
        "",
        SEGMENT.name,
        0,
        False,
        True,
        1.5,
        {"../x": DIGEST},
        *({SEGMENT.name: said} for said in NO_DIGESTS),
    ],
)
async def test_a_backup_whose_list_of_columns_is_none_is_damaged(columns: object, backup: Path, tmp_path: Path) -> None:
    content = {**orjson.loads((backup / "manifest.json").read_bytes())["backup"], "columns": columns}
    digest = sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    (backup / "manifest.json").write_bytes(orjson.dumps({"backup": content, "sha256": digest}, option=options))
    for read in (load, check_backup, intact):
        with pytest.raises(BackupDamaged, match="columns"):
            read(backup)
    with pytest.raises(BackupDamaged, match="columns"):
        fetch(Directory(backup), tmp_path / "fetched", columns=True)
