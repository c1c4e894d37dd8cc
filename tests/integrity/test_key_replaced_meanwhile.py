"""`kledger key rotate` may come at any moment: between any two steps of what is signed or read in that moment."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.archive.manifest import read_manifest, write_manifest
from ledger.integrity import audit_evidence
from ledger.integrity.audit_evidence import gather
from ledger.integrity.certificate import check_certificate, make_certificate
from ledger.integrity.chain import Chain
from ledger.integrity.checkpoints import SignedCheckpoint, append_checkpoints, read_checkpoints, sign
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey, public_keys
from producers.node.integrity import receipt_signer
from tests.integrity.logs import signed_log


@pytest.fixture
def replaced_at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process replaces the key whenever somebody has looked which one is in use."""
    look = SigningKeys._key

    def and_replace(keys: SigningKeys) -> Ed25519PrivateKey:
        key = look(keys)
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(SigningKeys, "_key", look)
            SigningKeys(keys.directory).rotate()
        return key

    monkeypatch.setattr(SigningKeys, "_key", and_replace)


@pytest.mark.usefixtures("replaced_at_each_look")
def test_a_checkpoint_names_the_key_that_signed_it(tmp_path: Path) -> None:
    keys = SigningKeys.open(tmp_path)
    signed = sign(Chain.empty(), keys, datetime.now(UTC))
    assert signed.signed_by(public_keys(tmp_path))


@pytest.mark.usefixtures("replaced_at_each_look")
def test_a_certificate_names_the_key_that_signed_it(tmp_path: Path) -> None:
    views = {"items": {"rows": 1, "digest": "00"}}
    result = {"product": {}, "views_schema": 1, "views": views}
    made = make_certificate(result, Chain.empty(), SigningKeys.open(tmp_path), datetime.now(UTC))
    assert check_certificate(orjson.loads(orjson.dumps(made))) is None


@pytest.mark.usefixtures("replaced_at_each_look")
def test_a_segment_of_the_archive_names_the_key_that_signed_it(tmp_path: Path) -> None:
    directory = tmp_path / "archive" / "segment"
    directory.mkdir(parents=True)
    write_manifest(directory, {"sha256": "00"}, SigningKeys.open(tmp_path / "keys"))
    assert read_manifest(directory, public_keys(tmp_path / "keys"))["sha256"] == "00"


@pytest.mark.usefixtures("replaced_at_each_look")
def test_a_receipt_names_the_key_that_signed_it(tmp_path: Path) -> None:
    files = NotaryFiles.of(tmp_path)
    SigningKeys.open(files.keys)
    told = receipt_signer(files)(b"{}")
    key = VerifyingKey.from_text(str(told["key"]))
    assert key.signed(b"kledger receipt\n{}", base64.b64decode(str(told["signature"])))


@pytest.mark.parametrize("anchored", [False, True])
def test_an_audit_knows_the_key_that_came_into_use_while_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, anchored: bool
) -> None:
    _, files = signed_log(tmp_path, 3, every=3)
    keys = SigningKeys(files.keys)
    before = keys.current()
    (last,) = read_checkpoints(files.checkpoints)

    def and_sign_before(path: Path, invalid: object) -> list[SignedCheckpoint]:
        keys.rotate()
        append_checkpoints(path, [sign(Chain.empty(), keys, datetime.now(UTC))])
        return read_checkpoints(path)

    monkeypatch.setattr(audit_evidence, "read_checkpoints", and_sign_before)
    evidence = gather(files, anchor=before if anchored else None)
    assert evidence.findings == []
    assert evidence.certified == last.position
