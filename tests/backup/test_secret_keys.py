"""A secret key that is given where a public one is wanted is refused as what it is, and no command ever prints it."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kledger.contract.errors import InvalidPayload
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.privacy.master_key import new_master_key
from producers.cli.on_files import public_key
from tests.doors.test_cli_knowledge import kledger

SECRET = bytes(range(100, 132))
AS_BASE64, AS_HEX = base64.b64encode(SECRET).decode(), SECRET.hex()


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The data directory of a node with a signing key and a master key."""
    data = tmp_path / "data"
    SigningKeys.open(NotaryFiles.of(data).keys)
    new_master_key(data)
    return data


def public_file(data: Path) -> Path:
    (file,) = (data / "keys" / "public").glob("*.pem")
    return file


def _under_another_name(key: Path) -> Path:
    return key.rename(key.with_name("MASTER.KEY"))


def _linked(key: Path) -> Path:
    link = key.with_name("node.pem")
    link.symlink_to(key.name)
    return link


@pytest.mark.parametrize("given_as", [Path, _under_another_name, _linked])
def test_a_master_key_is_named_as_one_with_the_file_that_is_wanted(
    node: Path, given_as: Callable[[Path], Path]
) -> None:
    key = node / "keys" / "master.key"
    secret = key.read_text().strip()
    file = given_as(key)
    with pytest.raises(InvalidPayload) as refused:
        public_key(str(file))
    assert f"{file} is a master key" in refused.value.message
    assert str(public_file(node)) in refused.value.message
    assert secret not in f"{refused.value.message} {refused.value.details}"


def test_a_copy_of_a_master_key_elsewhere_is_told_what_shows_the_public_key(node: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(node / "keys" / "master.key", tmp_path))
    with pytest.raises(InvalidPayload, match="kledger key show") as refused:
        public_key(str(file))
    assert f"{file} is a master key" in refused.value.message


@pytest.mark.parametrize("text", [AS_HEX, AS_HEX.upper(), f"{AS_HEX}\n"])
@pytest.mark.parametrize("in_file", [True, False])
def test_32_bytes_in_hexadecimal_digits_are_what_a_master_key_may_be(text: str, in_file: bool, tmp_path: Path) -> None:
    (file := tmp_path / "key").write_text(text)
    with pytest.raises(InvalidPayload, match="hexadecimal digits, as a master key may be") as refused:
        public_key(str(file) if in_file else text)
    assert AS_HEX not in refused.value.message.casefold()
    assert (str(file) in refused.value.message) is in_file


def test_the_master_key_of_the_environment_is_known_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file := tmp_path / "secret").write_text(AS_BASE64)
    monkeypatch.setenv("KLEDGER_MASTER_KEY_FILE", str(file))
    with pytest.raises(InvalidPayload, match="secret is a master key"):
        public_key(str(file))
    monkeypatch.delenv("KLEDGER_MASTER_KEY_FILE")
    monkeypatch.setenv("KLEDGER_MASTER_KEY", f"{AS_BASE64}\n")
    for given in (str(file), AS_BASE64):
        with pytest.raises(InvalidPayload, match="is a master key") as refused:
            public_key(given)
        assert AS_BASE64 not in refused.value.message


def test_the_private_key_with_which_a_node_signs_is_named_as_that(node: Path) -> None:
    file = node / "keys" / "signing.pem"
    for given in (str(file), file.read_text()):
        with pytest.raises(InvalidPayload, match="is a private key") as refused:
            public_key(given)
        assert file.read_text().splitlines()[1] not in refused.value.message
        assert (str(public_file(node)) in refused.value.message) is (given == str(file))


@pytest.mark.parametrize(
    "text", [AS_HEX[:-1], AS_BASE64[:-3], f"{AS_BASE64}{AS_BASE64}", AS_HEX + "\n" + AS_HEX, AS_HEX * 9]
)
def test_what_may_be_most_of_a_secret_is_not_quoted(text: str) -> None:
    with pytest.raises(InvalidPayload, match="kledger key show") as refused:
        public_key(text)
    assert text[:20] not in refused.value.message


def test_a_file_that_is_no_key_is_named_however_long_its_path_is(tmp_path: Path) -> None:
    (file := tmp_path / ("n" * 50)).write_text("no key")
    with pytest.raises(InvalidPayload, match="n" * 50):
        public_key(str(file))


def test_a_public_key_is_one_in_a_file_of_any_name(node: Path) -> None:
    key = SigningKeys.open(node / "keys").current()
    (node / "keys" / "master.key").write_text(key.pem())
    assert public_key(str(node / "keys" / "master.key")) == key
    assert public_key(os.path.relpath(public_file(node))) == key


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "--data", "{data}"],
        ["check-proof", "{proof}"],
        ["backup", "--check", "{data}"],
        ["restore-backup", "{data}", "--data", "{new}"],
    ],
)
def test_every_command_that_takes_a_public_key_refuses_a_master_key_before_all_else(
    arguments: list[str], node: Path, tmp_path: Path
) -> None:
    (tmp_path / "proof.json").write_text("{}")
    (node / "chain").mkdir(exist_ok=True)
    places = {"data": node, "proof": tmp_path / "proof.json", "new": tmp_path / "new"}
    file = node / "keys" / "master.key"
    ran = kledger(*(one.format(**places) for one in arguments), "--key", str(file), "--json")
    assert ran.exit_code != 0
    assert "is a master key" in ran.output
    assert file.read_text().strip() not in ran.output
    assert not (tmp_path / "new").exists()
