"""Whatever happens to the files of a backup is found before anything is made from them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import BackupDamaged, InvalidPayload
from ledger.backup.checking import check_backup, intact
from ledger.backup.keys import write_keys
from ledger.backup.manifest import note_beside, writing_to
from ledger.backup.place import BESIDE, KEYS, LOCK, SESSIONS
from ledger.backup.sessions import keep_sessions
from ledger.broker.access import KEY_SUBJECTS
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.port import NewRecord
from ledger.sessions.subjects import SessionKey
from tests.backup.kept import backed_up, history, odd_events
from tests.conftest import LoopThread

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole") / "b"
    loop = LoopThread()
    loop.run(backed_up([*history(28), *odd_events(29)], directory))
    loop.run(with_what_is_beside(directory))
    loop.close()
    assert check_backup(directory).problems == []
    return directory


async def with_what_is_beside(directory: Path) -> None:
    """Keys of persons and words of sessions, as a node puts them there."""
    words = MemorySessionStream()
    assert await words.put([NewRecord(SessionKey("default", "user:ada", "s1").head(), b"{}", 0)])
    await keep_sessions(words, directory)
    write_keys(directory, {f"{KEY_SUBJECTS.removesuffix('>')}key.user:ada": b"a wrapped key"})
    note_beside(directory, *BESIDE)


def files_of(directory: Path) -> list[Path]:
    beside = [path for path in directory.iterdir() if path.is_file() and path.name not in ("manifest.json", "lock")]
    return [directory / "manifest.json", *sorted((directory / "events").iterdir()), *sorted(beside)]


def is_found(whole: Path, damage: Damage) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "b"
        shutil.copytree(whole, directory)
        damage(directory)
        with pytest.raises(BackupDamaged):
            intact(directory)
        try:
            return bool(check_backup(directory).problems)
        except BackupDamaged:
            return True


@given(st.data())
def test_any_changed_byte_is_found(whole: Path, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(files_of(whole)) - 1))
    at = data.draw(st.integers(0, files_of(whole)[which].stat().st_size - 1))
    by = data.draw(st.integers(1, 255))

    def change(directory: Path) -> None:
        file = files_of(directory)[which]
        content = bytearray(file.read_bytes())
        content[at] ^= by
        file.write_bytes(content)

    assert is_found(whole, change)


@given(st.data())
def test_any_file_cut_short_or_longer_is_found(whole: Path, data: st.DataObject) -> None:
    which = data.draw(st.integers(0, len(files_of(whole)) - 1))
    left = data.draw(st.integers(0, files_of(whole)[which].stat().st_size - 1))
    more = data.draw(st.binary(max_size=3))

    def cut(directory: Path) -> None:
        file = files_of(directory)[which]
        content = file.read_bytes()
        file.write_bytes(content + more if more else content[:left])

    assert is_found(whole, cut)


@given(st.data())
def test_any_removed_swapped_or_repeated_file_is_found(whole: Path, data: st.DataObject) -> None:
    names = st.integers(0, len(files_of(whole)) - 1)
    one, other = data.draw(st.lists(names, min_size=2, max_size=2, unique=True))
    kind = data.draw(st.sampled_from(["remove", "swap", "repeat"]))

    def shuffle(directory: Path) -> None:
        first, second = files_of(directory)[one], files_of(directory)[other]
        contents = first.read_bytes(), second.read_bytes()
        if kind == "remove":
            first.unlink()
            return
        second.write_bytes(contents[0])
        if kind == "swap":
            first.write_bytes(contents[1])

    assert is_found(whole, shuffle)


@pytest.mark.parametrize(("file", "needed_for"), [(KEYS, "what persons said"), (SESSIONS, "the words of sessions")])
def test_a_file_that_is_gone_is_told_with_what_it_was_for(
    file: str, needed_for: str, whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole, tmp_path / "b")
    (tmp_path / "b" / file).unlink()
    assert check_backup(tmp_path / "b").problems == [f"{file} is missing: {needed_for} cannot be read without it"]


def test_what_is_no_file_is_found_and_not_waited_for(whole: Path) -> None:
    for which in range(len(files_of(whole))):
        for put_there in (os.mkfifo, Path.mkdir):

            def replace(directory: Path, which: int = which, put_there: Damage = put_there) -> None:
                file = files_of(directory)[which]
                file.unlink()
                put_there(file)

            assert is_found(whole, replace)


def test_a_lock_that_is_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(InvalidPayload, match="cannot be written"), writing_to(tmp_path):
        pass


def test_a_lock_that_is_a_link_is_told_and_makes_no_file_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidPayload, match="cannot be written"), writing_to(tmp_path / "b"):
        pass
    assert not (tmp_path / "elsewhere").exists()


async def test_every_damaged_file_is_named_and_the_whole_ones_are_not(whole: Path, tmp_path: Path) -> None:
    directory = tmp_path / "b"
    shutil.copytree(whole, directory)
    _, first, second, third, *_ = files_of(directory)
    first.write_bytes(b"")
    third.unlink()
    problems = check_backup(directory).problems
    assert [problem.split()[0].removeprefix("events/") for problem in problems] == [first.name, third.name]
    assert second.name not in " ".join(problems)


async def test_an_earlier_manifest_put_back_is_a_shorter_backup_and_says_so(tmp_path: Path) -> None:
    directory = tmp_path / "b"
    await backed_up(history(10), directory)
    earlier = (directory / "manifest.json").read_bytes()
    await backed_up(history(20), directory)
    (directory / "manifest.json").write_bytes(earlier)
    checked = check_backup(directory)
    assert (checked.problems, checked.position) == ([], 10)
    assert (await backed_up(history(20), directory)).added == 10


@pytest.mark.parametrize("name", BESIDE)
async def test_what_stands_beside_the_events_of_another_backup_is_not_taken_for_this_ones(
    name: str, whole: Path, tmp_path: Path
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    shutil.copytree(whole, own)
    await backed_up(history(28), other)
    await with_what_is_beside(other)
    assert check_backup(other).problems == []
    for each in other.iterdir():  # whole, with the words that it names
        if each.name == name or (name == SESSIONS and each.suffix == ".words"):
            shutil.copy(each, own)
    (problem,) = check_backup(own).problems
    assert f"{name} of the backup in {own} is damaged (it is of another backup)" in problem
    with pytest.raises(BackupDamaged):
        intact(own)
    await with_what_is_beside(own)  # the next run
    assert check_backup(own).problems == []


@pytest.mark.parametrize("name", BESIDE)
def test_a_copy_of_a_backup_and_one_of_before_are_taken(name: str, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "copy")
    assert check_backup(tmp_path / "copy").problems == []
    file = tmp_path / "copy" / name
    document = orjson.loads(file.read_bytes())
    del document["of"]  # as earlier versions wrote it
    file.write_bytes(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    assert check_backup(tmp_path / "copy").problems == []
