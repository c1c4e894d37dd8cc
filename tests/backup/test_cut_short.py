"""A backup that was cut short is as it was, or shorter and can be read; no run takes away what is nowhere else."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from kledger.contract.errors import BackupDamaged, BackupMismatch
from ledger.backup.checking import check_backup, read_backup
from ledger.backup.keys import kept_keys, write_keys
from ledger.backup.manifest import load
from ledger.backup.place import KEYS, Directory, Place
from ledger.backup.writing import back_up
from ledger.event import StoredEvent
from tests.backup.kept import backed_up, history, kept_in
from tests.integrity.logs import ListedLedger

LOG = history(40)


class Cut(BaseException):
    """The power fails."""


class Failing:
    """A directory in which the power fails before something is written for the `at`th time."""

    def __init__(self, directory: Path, at: int) -> None:
        self._place, self._left = Directory(directory), at

    def __getattr__(self, name: str) -> object:
        method = getattr(self._place, name)
        return self._until_cut(method) if name in ("write", "put", "remove") else method

    def _until_cut(self, method: Callable[..., object]) -> Callable[..., object]:
        def called(*arguments: object) -> object:
            self._left -= 1
            if self._left < 0:
                raise Cut
            return method(*arguments)

        return called


class Persons:
    """A vault and a log in which each event is said by somebody new, whose key is made right before it."""

    def __init__(self, log: Sequence[StoredEvent]) -> None:
        self._log, self.said = log, 0

    def more(self, count: int) -> None:
        self.said += count

    @property
    def ledger(self) -> ListedLedger:
        return ListedLedger(self._log[: self.said])

    async def keep(self, place: Place) -> None:
        records = {f"key.{position}": b"" for position in range(1, self.said + 1)}
        self.more(2)  # somebody goes on while a backup is made
        write_keys(place, {f"$KV.kledger_keys.{name}": record for name, record in records.items()})


def readable_to(directory: Path) -> int:
    """The last position whose person's key is in a backup."""
    return max((int(name.rpartition(".")[2]) for name in kept_keys(directory)), default=0)


@contextmanager
def cut(directory: Path, at: int) -> Iterator[Place]:
    with contextlib.suppress(Cut):
        yield Failing(directory, at)  # type: ignore[misc]  # a place by its methods


@pytest.mark.parametrize("said_before", [0, 15])
async def test_wherever_a_run_is_cut_the_keys_of_all_events_are_in_the_backup(tmp_path: Path, said_before: int) -> None:
    reached = set()
    for at in range(40):
        directory, persons = tmp_path / f"{at}", Persons(LOG)
        directory.mkdir()
        persons.more(said_before)
        await back_up(persons.ledger, directory, keep_keys=persons.keep, segment_events=4)
        persons.more(10)
        with cut(directory, at) as place:
            await back_up(persons.ledger, place, keep_keys=persons.keep, segment_events=4)
        checked = check_backup(directory)
        assert checked.problems == []
        assert readable_to(directory) >= checked.position
        reached.add(checked.position)
        if checked.position:
            assert KEYS in load(directory).beside
    assert len(reached) > 2


async def test_keys_are_not_written_into_the_backup_of_another_log(tmp_path: Path) -> None:
    persons, others = Persons(LOG), Persons(history(60)[20:])
    persons.more(20)
    await back_up(persons.ledger, tmp_path / "b", keep_keys=persons.keep)
    before = kept_keys(tmp_path / "b")
    others.more(30)
    other = ListedLedger([event._replace(position=at) for at, event in enumerate(LOG[10:] + LOG[:10], 1)])
    with pytest.raises(BackupMismatch):
        await back_up(other, tmp_path / "b", keep_keys=others.keep)
    assert kept_keys(tmp_path / "b") == before


async def test_the_manifest_of_another_backup_takes_no_events_away(tmp_path: Path) -> None:
    await backed_up(LOG, tmp_path / "b")
    await backed_up(history(5), tmp_path / "other", segment_events=3)
    shutil.copy(tmp_path / "b" / "manifest.json", tmp_path / "right")
    shutil.copy(tmp_path / "other" / "manifest.json", tmp_path / "b" / "manifest.json")
    with pytest.raises(BackupDamaged):
        await backed_up(LOG, tmp_path / "b")
    shutil.copy(tmp_path / "right", tmp_path / "b" / "manifest.json")
    assert check_backup(tmp_path / "b").problems == []
    assert kept_in(tmp_path / "b") == LOG


async def test_what_a_log_that_was_cut_no_longer_has_stays_beside_an_earlier_manifest(tmp_path: Path) -> None:
    await backed_up(LOG[:10], tmp_path / "b")
    shutil.copy(tmp_path / "b" / "manifest.json", tmp_path / "earlier")
    await backed_up(LOG, tmp_path / "b")
    shutil.copy(tmp_path / "b" / "manifest.json", tmp_path / "right")
    shutil.copy(tmp_path / "earlier", tmp_path / "b" / "manifest.json")
    assert (await backed_up(LOG[:12], tmp_path / "b")).position == 12
    shutil.copy(tmp_path / "right", tmp_path / "b" / "manifest.json")
    assert [one.event for kept in read_backup(tmp_path / "b") for one in kept] == LOG
