"""No restore and no repair brings the key of a forgotten person back, nor leaves it where an earlier one did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import BrokerUnavailable, RestoreRefused
from ledger.backup import restoring
from ledger.backup.keys import keep_keys, kept_keys, refuse_other_vault, write_keys
from ledger.backup.repairing import repair
from ledger.backup.restoring import restore
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket, kept_subjects, subject_of
from tests.backup.kept import backed_up, history
from tests.conftest import remove_streams

ADA, MASTER = "user:ada", bytes(32)
KEY, GONE = subject_of("key", ADA), subject_of("gone", ADA)


@pytest.fixture
async def target(embedded_server: EmbeddedServer) -> BrokerAccess:
    """A broker without a stream."""
    await remove_streams(embedded_server.access)
    return embedded_server.access


async def forget(access: BrokerAccess) -> None:
    vault = await JetStreamVault.open(access, MASTER)
    await vault.destroy(ADA, by="user:local", at="2026-03-05T12:00:00Z", receipt="r")
    await vault.close()


async def keep(access: BrokerAccess, directory: Path) -> None:
    connection = await BrokerConnection.open(access, "node", name="test")
    await keep_keys(connection, directory)
    await connection.close()


async def in_vault(access: BrokerAccess) -> set[str]:
    connection = await BrokerConnection.open(access, "node", name="test")
    subjects = await kept_subjects(connection)
    await connection.close()
    return set(subjects)


@pytest.fixture
async def backups(target: BrokerAccess, tmp_path: Path) -> tuple[Path, Path]:
    """One of before and one of after Ada was forgotten; the broker has nothing of either."""
    earlier, later = tmp_path / "earlier", tmp_path / "later"
    await ensure_keys_bucket(target)
    vault = await JetStreamVault.open(target, MASTER)
    await vault.obtain(ADA)
    await vault.close()
    await backed_up(history(20), earlier)
    await keep(target, earlier)
    await forget(target)
    await backed_up(history(30), later)
    await keep(target, later)
    assert KEY in kept_keys(earlier)
    assert {KEY, GONE} & kept_keys(later).keys() == {GONE}
    await remove_streams(target)
    return earlier, later


async def interrupted(access: BrokerAccess, backup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that ends once the keys are there."""

    async def ends(*_: object) -> int:
        raise BrokerUnavailable("ended")

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "restore_sessions", ends)
        with pytest.raises(BrokerUnavailable, match="ended"):
            await restore(access, backup)


async def test_a_later_backup_takes_the_key_away_that_an_interrupted_restore_of_an_earlier_one_brought_back(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = backups
    await interrupted(target, earlier, monkeypatch)
    assert KEY in await in_vault(target)
    await restore(target, later, start_over=True)
    assert {KEY, GONE} & await in_vault(target) == {GONE}


async def test_an_earlier_backup_does_not_bring_the_key_back_of_whom_the_vault_knows_as_forgotten(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = backups
    await interrupted(target, later, monkeypatch)
    await restore(target, earlier, start_over=True)
    assert {KEY, GONE} & await in_vault(target) == {GONE}


async def test_a_repair_that_brings_a_tombstone_back_erases_the_key(
    backups: tuple[Path, Path], target: BrokerAccess, tmp_path: Path
) -> None:
    """As where an older copy of the broker's directory was put back."""
    earlier, later = backups
    await restore(target, later)
    connection = await BrokerConnection.open(target, "admin", name="test")
    await connection.api("STREAM.DELETE.KV_KLEDGER_KEYS")
    await ensure_keys_bucket(target)
    for subject, record in kept_keys(earlier).items():
        await connection.request(subject, record)
    await connection.close()
    await repair(target, later, tmp_path / "into")
    assert {KEY, GONE} & await in_vault(target) == {GONE}


async def test_a_backup_keeps_no_key_beside_its_tombstone(
    backups: tuple[Path, Path], target: BrokerAccess, tmp_path: Path
) -> None:
    """As a forgetting leaves both for a moment, and as earlier versions brought them back."""
    earlier, later = backups
    both = {**kept_keys(earlier), **kept_keys(later)}
    await restore(target, later)
    connection = await BrokerConnection.open(target, "admin", name="test")
    await connection.request(KEY, both[KEY])
    await connection.close()
    assert {KEY, GONE} <= await in_vault(target)
    await keep(target, later)
    assert {KEY, GONE} & kept_keys(later).keys() == {GONE}
    assert b"key." not in (later / "keys.json").read_bytes()
    write_keys(tmp_path / "later", both)  # as one of before has them
    assert {KEY, GONE} & kept_keys(later).keys() == {GONE}


async def test_a_restore_looks_at_the_master_key_alone_before_it_begins(
    backups: tuple[Path, Path], target: BrokerAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a forgetting erases in the meantime is read once it is done."""
    _, later = backups
    await restore(target, later)
    connection = await BrokerConnection.open(target, "admin", name="test")
    asked, api = list[str](), BrokerConnection.api

    async def noted(self: BrokerConnection, subject: str, *given: Any, **named: Any) -> Any:
        asked.append(subject)
        return await api(self, subject, *given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(BrokerConnection, "api", noted)
        await refuse_other_vault(connection, later)
    await connection.close()
    assert asked == ["STREAM.MSG.GET.KV_KLEDGER_KEYS"]


async def test_a_backup_of_another_ledger_is_not_brought_back_where_the_keys_of_the_first_are(
    backups: tuple[Path, Path], target: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own keys would find no room, and a node could not open what it says."""
    earlier, _ = backups
    await ensure_keys_bucket(target)
    vault = await JetStreamVault.open(target, bytes(31) + b"x")
    await vault.obtain(ADA)
    await vault.close()
    other = tmp_path / "other"
    await backed_up(history(10), other)
    await keep(target, other)
    await remove_streams(target)
    await interrupted(target, earlier, monkeypatch)
    with pytest.raises(RestoreRefused, match="another master key"):
        await restore(target, other, start_over=True)
    assert (await restore(target, earlier)).continued_from == 20
