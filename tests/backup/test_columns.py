"""A backup may have the archive's decoded columns: a restore folds from those that are whole and signed, and no others.

Whatever is wrong with them, the views are the same, and the backup is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from kledger.contract.errors import BackupDamaged, ServiceFailed
from ledger.archive.archived import Archived
from ledger.archive.manifest import NAME, read_manifest, write_manifest
from ledger.archive.segments import Segment
from ledger.backup.as_archive import BackedUpArchive
from ledger.backup.checking import check_backup, intact
from ledger.backup.fetching import fetch
from ledger.backup.manifest import load, save
from ledger.backup.opening import opened
from ledger.backup.place import Directory, Place
from ledger.backup.put_back import put_back
from ledger.backup.writing import BackedUp, back_up
from ledger.event import Fact, StoredEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey, public_keys
from ledger.store.parked import NONE_PARKED
from projections.archive.reading import Archive
from projections.archive.writing import write_due
from projections.engine.decode import Decoded
from projections.engine.digest import RelationDigest
from projections.engine.predecode import decode_ahead
from projections.fold_kit.parser import Parser
from tests.archive.archives import archived, decoded_by_readers, folded
from tests.archive.test_sealed_columns import KEYS, LOG, SIZE, keyring
from tests.backup.stores import BUCKET, Store, object_store
from tests.conftest import LoopThread
from tests.integrity.logs import ListedLedger

TAIL = SIZE // 2
NAMES = [Segment(last - SIZE + 1, last).name for last in range(SIZE, len(LOG) - TAIL, SIZE)]
"""The segments of the archive; behind them the log has a few more events."""


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, loop: LoopThread) -> Path:
    """The data directory of a node with all but the last events of LOG in its archive; no test changes it."""
    data = tmp_path_factory.mktemp("node")
    loop.run(archived(data, LOG[:-TAIL], SIZE, keyring(KEYS)))
    return data


@pytest.fixture(scope="module")
def right(loop: LoopThread) -> dict[str, RelationDigest]:
    """The views of LOG."""
    return loop.run(folded(LOG, None, keyring=keyring(KEYS)))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The positions of the events of segments that were decoded while views were folded."""
    return decoded_by_readers(monkeypatch)


def key_of(data: Path) -> VerifyingKey:
    """The public key of a node."""
    return SigningKeys.open(NotaryFiles.of(data).keys).current()


async def kept(data: Path, where: Path | Place, columns: bool | None, log: Sequence[StoredEvent] = LOG) -> BackedUp:
    """A run of `kledger backup` on a node with this data directory."""
    return await back_up(ListedLedger(log), where, archived=Archived.of_node(data), columns=columns)


async def from_backup(directory: Path, key: VerifyingKey) -> dict[str, RelationDigest]:
    """The views that a restore folds which trusts this key."""
    archive = Archive(BackedUpArchive.of(directory, load(directory), key))
    return await folded(LOG, archive, keyring=keyring(KEYS))


def files_of_columns(directory: Path) -> list[Path]:
    return sorted(path for path in (directory / "columns").rglob("*") if path.is_file())


@pytest.fixture
async def backup(node: Path, tmp_path: Path) -> Path:
    """A backup with columns."""
    await kept(node, tmp_path / "b", True)
    return tmp_path / "b"


async def test_views_are_folded_from_them_without_decoding_what_they_have(
    backup: Path, node: Path, decoded: list[int], right: dict[str, RelationDigest]
) -> None:
    assert sorted(load(backup).columns or ()) == NAMES
    assert check_backup(backup).problems == []
    assert await from_backup(backup, key_of(node)) == right
    refused = await _decoded_from_archive(node, decoded)
    assert len(refused) < SIZE
    assert decoded == [*refused, *refused]


async def _decoded_from_archive(node: Path, decoded: list[int]) -> list[int]:
    """What a rebuild from the archive itself decodes: events of which nothing can be kept."""
    before = len(decoded)
    await folded(LOG, Archive.of_node(node), keyring=keyring(KEYS))
    return decoded[before:]


async def test_they_take_no_room_on_the_disk_of_the_archive(backup: Path, node: Path) -> None:
    there = sorted(path for path in (node / "archive" / "columns").rglob("*") if path.is_file())
    ours = files_of_columns(backup)
    assert len(ours) == len(there) > len(NAMES)
    assert all(one.samefile(other) for one, other in zip(ours, there, strict=True))


async def test_a_backup_has_none_that_nobody_asked_for_and_goes_on_as_it_was_told(node: Path, tmp_path: Path) -> None:
    directory = tmp_path / "b"
    assert (await kept(node, directory, None)).columns is None
    assert load(directory).columns is None
    assert files_of_columns(directory) == []
    assert (await kept(node, directory, True)).columns == len(NAMES)
    assert (await kept(node, directory, None)).columns == len(NAMES)
    assert (await kept(node, directory, False)).columns is None
    assert load(directory).columns is None
    assert not (directory / "columns" / NAMES[0]).exists()
    assert (await kept(node, directory, None)).columns is None
    assert check_backup(directory).problems == []


async def test_a_run_and_a_check_say_how_many_files_have_columns_where_some_were_asked_for(
    node: Path, tmp_path: Path
) -> None:
    few = LOG[: SIZE - 1]
    assert (await back_up(ListedLedger(few), tmp_path / "young", columns=True)).columns == 0
    assert check_backup(tmp_path / "young").columns == 0
    await kept(node, tmp_path / "b", True)
    assert check_backup(tmp_path / "b").columns == len(NAMES)
    await kept(node, tmp_path / "b", False)
    assert check_backup(tmp_path / "b").columns is None


async def test_columns_that_the_archive_made_anew_take_the_place_of_those_before(
    node: Path, tmp_path: Path, decoded: list[int], right: dict[str, RelationDigest], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, directory = tmp_path / "data", tmp_path / "b"
    shutil.copytree(node, data)
    await kept(data, directory, True)
    before = dict(load(directory).columns or {})
    for module in ("projections.archive.writing", "projections.archive.reading"):
        monkeypatch.setattr(f"{module}.DECODER_VERSION", "another")
    assert await from_backup(directory, key_of(data)) == right
    assert len(decoded) == len(NAMES) * SIZE, "they are of another version"
    await write_due(ListedLedger(LOG), data, len(LOG) - TAIL, SIZE, keyring(KEYS))
    await kept(data, directory, None)
    assert not set(before.values()) & set((load(directory).columns or {}).values())
    assert check_backup(directory).problems == []
    decoded.clear()
    assert await from_backup(directory, key_of(data)) == right
    assert len(decoded) < SIZE


async def test_nobody_elses_are_believed(
    backup: Path, tmp_path: Path, decoded: list[int], right: dict[str, RelationDigest]
) -> None:
    assert await from_backup(backup, key_of(tmp_path / "other")) == right
    assert len(decoded) == len(NAMES) * SIZE
    put_back(backup, load(backup), tmp_path / "restored", fewest=10, key=key_of(tmp_path / "other"))
    assert not (tmp_path / "restored" / "archive" / "columns").exists()


async def test_those_of_other_events_are_not_believed(
    backup: Path, node: Path, decoded: list[int], right: dict[str, RelationDigest]
) -> None:
    """Their manifest is signed by the node, and names other leaves."""
    other, one = (backup / "columns" / name for name in NAMES[:2])
    keys = SigningKeys.open(NotaryFiles.of(node).keys)
    stated = read_manifest(other, public_keys(NotaryFiles.of(node).keys))
    first, last = (int(part) for part in NAMES[1].split("-"))
    shutil.rmtree(one)
    shutil.copytree(other, one)
    write_manifest(one, {**stated, "first": first, "last": last}, keys)
    assert await from_backup(backup, key_of(node)) == right
    assert set(range(first, last + 1)) <= set(decoded)
    assert any("columns" in problem for problem in check_backup(backup).problems)


def _changed(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1])


def _a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("nowhere")


def _a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [_changed, _cut, Path.unlink, _a_link, _a_pipe])
@pytest.mark.parametrize("name", [NAME, "words.parquet", "knowledge.saved.sealed.parquet"])
async def test_damaged_ones_are_named_and_cost_the_restore_nothing_but_time(
    name: str,
    damage: Callable[[Path], None],
    backup: Path,
    node: Path,
    right: dict[str, RelationDigest],
    second: dict[type[Fact], pa.Table],
    tmp_path: Path,
) -> None:
    damage(backup / "columns" / NAMES[1] / name)
    (problem,) = check_backup(backup).problems
    assert f"columns/{NAMES[1]}" in problem
    assert "decodes" in problem
    assert intact(backup).position == len(LOG)
    assert _of_second(backup, key_of(node)) == second
    if name == "words.parquet" or damage is _cut:  # to fold takes most of the time: each damage once, and each file
        assert await from_backup(backup, key_of(node)) == right
    assert put_back(backup, load(backup), tmp_path / "restored", fewest=10, key=key_of(node)) == len(
        load(backup).segments
    )
    adopted = [path.name for path in (tmp_path / "restored" / "archive" / "columns").iterdir()]
    assert sorted(adopted) == [name for name in NAMES if name != NAMES[1]]
    await kept(node, backup, None)


@pytest.fixture(scope="module")
def second() -> dict[type[Fact], pa.Table]:
    """What a fold is given of the second segment where there is no archive."""
    with closing(Parser()) as parser:
        read = decode_ahead(parser, keyring(KEYS), LOG[SIZE : 2 * SIZE], NONE_PARKED)
    assert isinstance(read, Decoded)
    return read.parsed


def _of_second(backup: Path, key: VerifyingKey) -> dict[type[Fact], pa.Table]:
    """What it is given from a backup with something wrong there."""
    archive = Archive(BackedUpArchive.of(backup, load(backup), key))
    with closing(Parser()) as parser:
        read = archive.decoded(parser, keyring(KEYS), Segment(SIZE + 1, 2 * SIZE), NONE_PARKED)
    assert [each["segment"] for each in archive.damaged] == [NAMES[1]]
    assert isinstance(read, Decoded)
    return read.parsed


@pytest.mark.parametrize("damage", [_cut, Path.unlink, _a_link, _a_pipe])
@pytest.mark.parametrize("name", [NAME, "words.parquet", "knowledge.saved.sealed.parquet"])
async def test_the_next_run_keeps_once_more_what_is_missing_or_cut(
    name: str, damage: Callable[[Path], None], backup: Path, node: Path
) -> None:
    damage(backup / "columns" / NAMES[1] / name)
    assert check_backup(backup).problems
    assert (await kept(node, backup, None)).columns == len(NAMES)
    assert check_backup(backup).problems == []


@pytest.mark.parametrize("name", [NAME, "words.parquet"])
async def test_the_check_says_which_two_commands_mend_what_was_changed_and_they_do(
    name: str, backup: Path, node: Path
) -> None:
    """What is in a file is not read by a run: of an object store that would be all of it."""
    _changed(backup / "columns" / NAMES[1] / name)
    await kept(node, backup, True)
    (problem,) = check_backup(backup).problems
    assert f"kledger backup {backup} --no-columns and then kledger backup {backup} --columns mend it" in problem
    await kept(node, backup, False)
    assert (await kept(node, backup, True)).columns == len(NAMES)
    assert check_backup(backup).problems == []


@pytest.mark.parametrize("damage", [_cut, Path.unlink, _a_link, _a_pipe])
async def test_the_two_commands_mend_other_damage_as_well(
    damage: Callable[[Path], None], backup: Path, node: Path
) -> None:
    damage(backup / "columns" / NAMES[1] / "words.parquet")
    (problem,) = check_backup(backup).problems
    assert "--no-columns and then" in problem
    await kept(node, backup, False)
    await kept(node, backup, True)
    assert check_backup(backup).problems == []


async def test_what_was_changed_in_the_archive_as_well_is_kept_no_more_by_these_commands(
    node: Path, tmp_path: Path
) -> None:
    """A file of both is one file on the disk; the archive's reader has it decoded anew."""
    data, directory = tmp_path / "data", tmp_path / "b"
    shutil.copytree(node, data)
    await kept(data, directory, True)
    with (directory / "columns" / NAMES[1] / "words.parquet").open("r+b") as file:
        file.write(b"xxxx")
    assert len(check_backup(directory).problems) == 1
    await kept(data, directory, False)
    assert (await kept(data, directory, True)).columns == len(NAMES) - 1
    assert check_backup(directory).problems == []


async def test_the_restored_node_has_them_signed_with_a_key_of_its_own(
    backup: Path, node: Path, tmp_path: Path, decoded: list[int], right: dict[str, RelationDigest]
) -> None:
    data = tmp_path / "restored"
    put_back(backup, load(backup), data, fewest=10, key=key_of(node))
    assert key_of(data).id != key_of(node).id
    archive = Archive.of_node(data)
    assert await folded(LOG, archive, keyring=keyring(KEYS)) == right
    assert archive.damaged == []
    assert not {at for at in decoded if at <= len(NAMES) * SIZE} - set(await _decoded_from_archive(node, decoded))


async def test_a_run_that_ends_at_any_file_of_them_leaves_a_whole_backup_and_the_next_one_goes_on(
    node: Path, tmp_path: Path, right: dict[str, RelationDigest], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, ends_at = tmp_path / "b", 0
    folded_with: set[tuple[str, ...]] = set()
    put = Directory.put
    while True:
        counted, ends_at = 0, ends_at + 3

        def fails_once(place: Directory, draft: Path, name: str, at: int = ends_at) -> None:
            nonlocal counted
            counted += name.startswith("columns/")
            if counted == at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            put(place, draft, name)

        monkeypatch.setattr(Directory, "put", fails_once)
        try:
            await kept(node, directory, True)
        except ServiceFailed:
            assert check_backup(directory).problems == []
            listed = tuple(load(directory).columns or ())
            if listed not in folded_with:  # a restore reads what is listed alone, and the check has read all of that
                folded_with.add(listed)
                assert await from_backup(directory, key_of(node)) == right
        else:
            break
    assert ends_at > 6
    assert folded_with == {(), (NAMES[0],)}
    assert check_backup(directory).problems == []
    assert sorted(load(directory).columns or ()) == NAMES
    assert not list(directory.rglob("*.part"))


async def test_a_manifest_that_names_columns_of_no_file_is_damaged(backup: Path) -> None:
    manifest = load(backup)
    save(backup, manifest.with_columns({"000000000000001-000000000000002": "0" * 64}))
    with pytest.raises(BackupDamaged, match="columns of other events"):
        load(backup)


async def test_other_files_beside_the_columns_are_left_alone(backup: Path, node: Path) -> None:
    notes = backup / "columns" / "notes" / "mine.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    await kept(node, backup, False)
    assert notes.read_text() == "mine"
    assert not (backup / "columns" / NAMES[0]).exists()


async def test_columns_that_are_kept_no_more_leave_no_folder(backup: Path, node: Path) -> None:
    await kept(node, backup, False)
    assert not (backup / "columns").exists()


@pytest.mark.parametrize("folder", ["columns", f"columns/{NAMES[0]}"])
@pytest.mark.parametrize("columns", [None, False])
async def test_an_empty_folder_of_columns_that_an_earlier_run_left_is_removed(
    folder: str, columns: bool | None, node: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "b"
    await kept(node, directory, None)
    (directory / folder).mkdir(parents=True)
    await kept(node, directory, columns)
    assert not (directory / "columns").exists()
    assert check_backup(directory).problems == []


async def test_a_link_in_the_place_of_a_folder_of_columns_is_left_alone(node: Path, tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "b", tmp_path / "elsewhere"
    await kept(node, directory, None)
    elsewhere.mkdir()
    (directory / "columns").symlink_to(elsewhere)
    await kept(node, directory, None)
    assert (directory / "columns").is_symlink()
    assert elsewhere.is_dir()


async def test_in_an_object_store_they_are_fetched_by_whoever_trusts_a_key(
    node: Path, tmp_path: Path, right: dict[str, RelationDigest], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"s3://{BUCKET}/node/one"
    with object_store(tmp_path / "store") as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        with opened(where) as place:
            await kept(node, place, True)
            assert check_backup(place).problems == []
            fetch(place, tmp_path / "without")
            assert load(tmp_path / "without").columns is None
            assert files_of_columns(tmp_path / "without") == []
            _spoilt(store, f"columns/{NAMES[0]}/words.parquet")
            fetch(place, tmp_path / "with", columns=True)
            assert sorted(load(tmp_path / "with").columns or ()) == NAMES[1:]
            assert await from_backup(tmp_path / "with", key_of(node)) == right
            (problem,) = check_backup(place).problems
            assert f"kledger backup {where} --no-columns and then kledger backup {where} --columns mend it" in problem
            await kept(node, place, False)
            await kept(node, place, True)
            assert check_backup(place).problems == []
            await kept(node, place, False)
            assert not [name for name in place.sizes() if name.startswith("columns/")]


def _spoilt(store: Store, name: str) -> None:
    (path,) = [path for path in store.folder.rglob("*") if path.as_posix().endswith(name)]
    path.write_bytes(b"x" + path.read_bytes())
