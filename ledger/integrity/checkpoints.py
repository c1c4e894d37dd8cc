"""Signed checkpoints of the chain: a position with the chain's head and the tree's root, signed by the node.

They are JSON lines in an append-only file outside of the broker's directory. They are worth most where the node's own
machine cannot reach: copy the file, or have each checkpoint sent away (ledger/integrity/checkpoint_hook.py).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from kledger.contract.json_text import MOST_POSITION
from ledger.event import JsonObject
from ledger.integrity.chain import HASH_BYTES, Chain
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from ledger.runtime.synced import append_lines

_PURPOSE = b"kledger checkpoint 1\n"
_TAIL_BYTES = 4096  # a line has about 400
_BLOCK_BYTES = _LONGEST_LINE = 1 << 16


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """The Merkle `root` and chain `head` of the log up to `position`; `time` is when it was signed, in UTC."""

    position: int
    root: bytes
    head: bytes
    time: datetime
    key_id: str
    signature: bytes

    def message(self) -> bytes:
        """The signed bytes: every other field, each with a fixed offset or length."""
        return _message(self.position, self.root, self.head, self.time, self.key_id)

    def signed_by(self, keys: Mapping[str, VerifyingKey]) -> bool:
        """Whether one of `keys` made the signature."""
        key = keys.get(self.key_id)
        return key is not None and key.signed(self.message(), self.signature)

    def fits(self, chain: Chain) -> bool:
        """Whether this is the checkpoint of `chain`."""
        return (self.position, self.root, self.head) == (chain.position, chain.root(), chain.head)

    def to_json(self) -> JsonObject:
        """The checkpoint as JSON: hashes in hexadecimal, signature in base64."""
        return {
            "position": self.position,
            "root": self.root.hex(),
            "head": self.head.hex(),
            "time": self.time.isoformat(),
            "key": self.key_id,
            "signature": base64.b64encode(self.signature).decode(),
        }

    @classmethod
    def from_json(cls, document: object) -> SignedCheckpoint:
        """Parse the output of `to_json`. Raises ValueError for any other document."""
        if not isinstance(document, dict):
            raise ValueError("not a signed checkpoint")
        try:
            position, key_id, time = document["position"], document["key"], datetime.fromisoformat(document["time"])
            root, head = bytes.fromhex(document["root"]), bytes.fromhex(document["head"])
            signature = base64.b64decode(document["signature"], validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("not a signed checkpoint") from error
        typed = type(position) is int and isinstance(key_id, str) and time.tzinfo is not None
        if not typed or not 0 <= position <= MOST_POSITION or not len(root) == len(head) == HASH_BYTES:
            raise ValueError("not a signed checkpoint")
        return cls(position, root, head, time.astimezone(UTC), key_id, signature)


def _message(position: int, root: bytes, head: bytes, time: datetime, key_id: str) -> bytes:
    moment = int(time.timestamp() * 1_000_000)
    return _PURPOSE + position.to_bytes(8) + moment.to_bytes(8, signed=True) + root + head + key_id.encode()


def sign(chain: Chain, keys: SigningKeys, time: datetime) -> SignedCheckpoint:
    """Sign the current state of a chain. Raises UnsafeKeyFile."""
    root, key, time = chain.root(), keys.in_use(), time.astimezone(UTC)
    signature = key.sign(_message(chain.position, root, chain.head, time, key.public.id))
    return SignedCheckpoint(chain.position, root, chain.head, time, key.public.id, signature)


def append_checkpoints(path: Path, checkpoints: Iterable[SignedCheckpoint]) -> None:
    """Append checkpoints to the file and sync it to disk. Raises OSError, and then the file is as it was."""
    append_lines(path, b"".join(orjson.dumps(one.to_json()) + b"\n" for one in checkpoints))


def last_checkpoint(path: Path) -> SignedCheckpoint | None:
    """The checkpoint of the file's last line; None where there is no file, or an empty one.

    A partial line, left by a crash, is removed, however long. Raises ValueError when the last whole line is not a
    checkpoint.
    """
    try:
        with path.open("r+b") as file:
            size = start = file.seek(0, os.SEEK_END)
            whole = b""
            while start and not whole:
                start, end = max(0, start - _TAIL_BYTES), start
                file.seek(start)
                tail = file.read(end - start)
                whole = tail[: tail.rfind(b"\n") + 1]
            if start + len(whole) < size:
                size = file.truncate(start + len(whole))
            file.seek(max(0, size - _TAIL_BYTES))
            whole = file.read()
    except FileNotFoundError:
        return None
    lines = whole.splitlines()
    return SignedCheckpoint.from_json(_json(lines[-1])) if lines else None


def from_the_last(path: Path) -> Iterator[SignedCheckpoint]:
    """The checkpoints of a file that can be read, the last line first; none where there is no file.

    No more of the file is read than is asked for: it grows as long as its node lives. Raises OSError.
    """
    with suppress(FileNotFoundError), path.open("rb") as file:
        start, cut = file.seek(0, os.SEEK_END), b""
        while start:
            start, end = max(0, start - _BLOCK_BYTES), start
            file.seek(start)
            first, *lines = (file.read(end - start) + cut).split(b"\n")
            for line in reversed(lines):
                yield from _readable(line)
            cut = first if len(first) < _LONGEST_LINE else b""  # so long a line is no checkpoint
        yield from _readable(cut)


def _readable(line: bytes) -> Iterator[SignedCheckpoint]:
    with suppress(ValueError):  # the last may still be under way
        yield SignedCheckpoint.from_json(_json(line))


def read_checkpoints(
    path: Path, invalid: Callable[[int, str], None] = lambda _line, _reason: None
) -> list[SignedCheckpoint]:
    """All checkpoints of a file, in its order; `invalid` is called with each bad line's number and the reason.

    Raises FileNotFoundError.
    """
    checkpoints = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            checkpoints.append(SignedCheckpoint.from_json(_json(line)))
        except ValueError as error:
            invalid(number, str(error))
    return checkpoints


def _json(line: bytes) -> object:
    """Raises ValueError, in the words of a line that is another document."""
    try:
        document: object = orjson.loads(line)
    except ValueError as error:
        raise ValueError("not a signed checkpoint") from error
    return document
