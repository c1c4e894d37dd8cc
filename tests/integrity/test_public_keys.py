"""A public key that somebody brings along is a file or base64, for every command, and is named where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kledger.contract.errors import InvalidPayload
from ledger.integrity.signing_keys import SigningKeys
from producers.cli.on_files import public_key
from tests.doors.test_cli_knowledge import kledger


@pytest.mark.parametrize(
    "text", ["", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "ключ", None]
)
def test_a_file_that_is_no_public_key_is_named_with_what_tells_the_right_one(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "node.pem"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidPayload) as refused:
        public_key(str(file))
    assert str(file) in refused.value.message
    assert "kledger key show" in refused.value.message


def test_a_key_is_the_same_from_its_file_and_in_base64(tmp_path: Path) -> None:
    key = SigningKeys.open(tmp_path / "keys").current()
    (tmp_path / "node.pem").write_text(key.pem())
    assert public_key(str(tmp_path / "node.pem")) == public_key(key.text()) == key
    assert public_key(None) is None


@pytest.mark.parametrize("command", ["audit", "check-proof", "backup", "restore-backup"])
def test_every_command_that_takes_a_key_takes_both_forms(command: str) -> None:
    assert "a file, or in base64" in kledger(command, "--help").stdout
