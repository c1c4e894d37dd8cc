"""A public key that somebody brings along for an audit or a proof is a file, and is named where it is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kledger.contract.errors import InvalidPayload
from producers.operations.admin.auditing import read_key


@pytest.mark.parametrize(
    "text", ["", "no key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "ключ", None]
)
def test_a_file_that_is_no_public_key_is_named_with_what_tells_the_right_one(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "node.pem"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidPayload) as refused:
        read_key(file)
    assert str(file) in refused.value.message
    assert "kledger key show" in refused.value.message
