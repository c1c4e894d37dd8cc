"""Where the master key is from: the environment, a file, or made at a first start and readable by its owner alone."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from kledger.contract.errors import WrongMasterKey
from ledger.privacy.master_key import kept_master_key, new_master_key

KEY = bytes(range(32))


def test_it_is_made_once_and_its_owner_alone_may_read_it(tmp_path: Path) -> None:
    assert kept_master_key(tmp_path, {}) is None
    assert not (tmp_path / "keys").exists(), "looking makes nothing"
    made = new_master_key(tmp_path)
    file = tmp_path / "keys" / "master.key"
    assert len(made) == 32
    assert kept_master_key(tmp_path, {}) == made
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("stated", [KEY.hex(), base64.b64encode(KEY).decode() + "\n"])
def test_the_environment_goes_before_the_file(tmp_path: Path, stated: str) -> None:
    assert kept_master_key(tmp_path, {"KLEDGER_MASTER_KEY": stated}) == KEY
    assert not (tmp_path / "keys").exists()


def test_another_file_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(KEY.hex())
    assert kept_master_key(tmp_path, {"KLEDGER_MASTER_KEY_FILE": str(tmp_path / "secret")}) == KEY


@pytest.mark.parametrize(
    "environment", [{"KLEDGER_MASTER_KEY": "short-and-secret"}, {"KLEDGER_MASTER_KEY_FILE": "nowhere/secret"}]
)
def test_one_that_is_malformed_or_missing_is_refused_without_showing_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with pytest.raises(WrongMasterKey) as told:
        kept_master_key(tmp_path, environment)
    assert "short-and-secret" not in told.value.message


def test_a_damaged_file_is_refused_and_not_replaced(tmp_path: Path) -> None:
    new_master_key(tmp_path)
    file = tmp_path / "keys" / "master.key"
    file.write_text("damaged")
    with pytest.raises(WrongMasterKey):
        kept_master_key(tmp_path, {})
    assert file.read_text() == "damaged"
