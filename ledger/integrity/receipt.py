"""Check the receipt of a forgetting with a public key: the node signs it with the key that signs its log."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import orjson

from kledger.contract.errors import InvalidPayload
from ledger.event import JsonObject
from ledger.integrity.signing_keys import VerifyingKey

SIGNED_AS = b"kledger receipt\n"
"""What stands before a receipt, as JSON with sorted keys, in the bytes that are signed."""


@dataclass(frozen=True, slots=True)
class CheckedReceipt:
    """The result of checking a receipt. `trusted` is False when the key was taken from the receipt's file itself."""

    receipt: JsonObject
    key: VerifyingKey | None
    trusted: bool
    faults: list[str]

    @property
    def holds(self) -> bool:
        return not self.faults

    def to_json(self) -> JsonObject:
        key = None if self.key is None else {"id": self.key.id, "key": self.key.text(), "given": self.trusted}
        return {"holds": self.holds, "receipt": self.receipt, "key": key, "faults": self.faults}


def is_receipt(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("receipt"), dict) and "signature" in document


def check_receipt(document: JsonObject, key: VerifyingKey | None = None) -> CheckedReceipt:
    """Check a receipt, as the file of it has it; without a key, with the one that stands in it.

    Raises InvalidPayload when its signature cannot be read.
    """
    receipt, signed = document["receipt"], document["signature"]
    if signed is None:
        return CheckedReceipt(receipt, key, key is not None, ["it is not signed: its node signed nothing then"])
    try:
        included = VerifyingKey.from_text(signed["key"])
        signature = base64.b64decode(signed["signature"], validate=True)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidPayload(f"this receipt cannot be read: {error!r}", errors=[]) from error
    used = key or included
    faults = []
    if used.id != included.id:
        faults.append(f"it was signed with the key {included.id}, not with the given one, {used.id}")
    if not used.signed(SIGNED_AS + orjson.dumps(receipt, option=orjson.OPT_SORT_KEYS), signature):
        faults.append("the signature is not by this key, or the receipt was changed")
    return CheckedReceipt(receipt, used, key is not None, faults)
