"""Signed checkpoints of a backup, and the check that its events match them.

The latest one is enough: its chain head and root cover every event before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kledger.contract.errors import BackupMismatch, InvalidPayload
from ledger.event import JsonObject
from ledger.integrity.chain import Chain
from ledger.integrity.checkpoints import SignedCheckpoint, from_the_last
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import VerifyingKey, public_keys


@dataclass(frozen=True, slots=True)
class Witness:
    """A signed checkpoint and the key that signed it."""

    checkpoint: SignedCheckpoint
    key: VerifyingKey

    @property
    def position(self) -> int:
        return self.checkpoint.position

    def to_json(self) -> JsonObject:
        """The checkpoint with the public key in base64: enough to verify it anywhere."""
        return {**self.checkpoint.to_json(), "public_key": self.key.text()}

    @classmethod
    def from_json(cls, document: JsonObject) -> Witness:
        """Parse the output of `to_json`. Raises ValueError for anything else, and when its signature is wrong."""
        checkpoint = SignedCheckpoint.from_json(document)
        try:
            key = VerifyingKey.from_text(str(document.get("public_key")))
        except InvalidPayload as error:
            raise ValueError(error.message) from error
        if not checkpoint.signed_by({key.id: key}):
            raise ValueError(f"the signature at position {checkpoint.position} is not that of its key")
        return cls(checkpoint, key)


@dataclass(frozen=True, slots=True)
class SignedLog:
    """A node's signed checkpoints and public keys, from outside the broker; none where it never signed."""

    checkpoints: Path
    keys: Mapping[str, VerifyingKey]

    @classmethod
    def of_node(cls, data: Path) -> SignedLog:
        """Those of the node in a data directory."""
        files = NotaryFiles.of(data)
        return cls(files.checkpoints, public_keys(files.keys))

    def latest(self, up_to: int | None = None) -> Witness | None:
        """The last checkpoint with a valid signature, at or before a position if one is given."""
        with contextlib.suppress(OSError):
            for one in from_the_last(self.checkpoints):
                if (up_to is None or one.position <= up_to) and one.signed_by(self.keys):
                    return Witness(one, self.keys[one.key_id])
        return None


def extend_past(chain: Chain, leaves: Sequence[bytes], witness: Witness | None) -> Chain:
    """The chain after more leaves. Raises BackupMismatch when it does not match a witness among them."""
    if witness is None or not chain.position < witness.position <= chain.position + len(leaves):
        return chain.extended(leaves)
    at = witness.position - chain.position
    chain = chain.extended(leaves[:at])
    if not witness.checkpoint.fits(chain):
        raise BackupMismatch(
            f"the events up to position {witness.position} are not those that were signed: their chain ends in "
            f"{chain.head.hex()}, the signed checkpoint says {witness.checkpoint.head.hex()}. kledger audit names "
            "what was changed",
            position=witness.position,
        )
    return chain.extended(leaves[at:])
