"""Did the ledger itself seal this event? The answer is the same with the key that sealed it and after that is gone.

Every event that holds a person's sealed words carries `sealmac`: a MAC over its subject, its id and its data as the log
has them, ciphertext and all. The MAC's key follows from the person's data key and outlives it, in the tombstone. It
gives no word away: what it is over, everybody who reads the log can read.

What was sealed before there was a MAC is unsworn: whether it verified is written down while the key is still there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

ATTRIBUTE = "sealmac"
"""The attribute of the envelope."""
UNFIT = -1
"""In the place of a number of a value: all seals verify, and what was sealed did not fit the event that held it."""

_ABOUT = b"kledger seal mac\n"
_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Witness:
    """Tells the events that one data key sealed. `secret` (32 bytes) opens nothing; it never shows itself."""

    secret: bytes = field(repr=False)

    @classmethod
    def of_key(cls, name: str, secret: bytes) -> Witness:
        """The witness of a data key: HKDF's expansion (RFC 5869) of the key, which is random as a whole."""
        return cls(hmac.digest(secret, _ABOUT + name.encode() + b"\x01", hashlib.sha256))

    def mac(self, subject: str, event_id: str, data: Any) -> str:
        """What an event carries: base64 of HMAC-SHA256. `data` is the event's data as JSON has it."""
        said = orjson.dumps((subject, event_id, data))
        return base64.b64encode(hmac.digest(self.secret, said, hashlib.sha256)).decode("ascii")

    def vouches(self, stated: object, subject: str, event_id: str, data: Any) -> bool:
        """Whether `stated` is the MAC of this event."""
        return isinstance(stated, str) and hmac.compare_digest(
            stated.encode(), self.mac(subject, event_id, data).encode()
        )


@dataclass(frozen=True, slots=True)
class Unsworn:
    """Which seals without a MAC counted when their key was destroyed: those up to `until`, but for what is `broken`.

    `broken` has for a position the number, from 0, of the first value sealed for this person that did not verify;
    or UNFIT.
    """

    until: int = 0
    broken: Mapping[int, int] = field(default_factory=dict)

    def counts(self, position: int, number: int) -> bool:
        """Whether the value of this number in the event at `position` verified."""
        first = self.broken.get(position)
        return position <= self.until if first is None else first == UNFIT or number < first

    def fits(self, position: int) -> bool:
        """False where what was sealed did not fit its event."""
        return self.broken.get(position) != UNFIT

    def pieces(self) -> list[str]:
        """`broken` as ASCII texts of at most 256 KiB; none when there is nothing to say."""
        if not self.broken:
            return []
        told, before = bytearray(), 0
        for position, number in sorted(self.broken.items()):
            told += _number(position - before) + _number(number - UNFIT)
            before = position
        text = base64.b64encode(zlib.compress(bytes(told), 9)).decode("ascii")
        return [text[start : start + _PIECE_BYTES] for start in range(0, len(text), _PIECE_BYTES)]

    @classmethod
    def read(cls, until: int, pieces: list[str]) -> Unsworn:
        """Undo `pieces`. Raises ValueError, zlib.error."""
        if not pieces:
            return cls(until)
        numbers = _numbers(zlib.decompress(base64.b64decode("".join(pieces), validate=True)))
        broken, position = dict[int, int](), 0
        for step in numbers:
            position += step
            broken[position] = next(numbers) + UNFIT
        return cls(until, broken)


def _number(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    told = bytearray()
    while value > 0x7F:
        told.append(value & 0x7F | 0x80)
        value >>= 7
    told.append(value)
    return bytes(told)


def _numbers(told: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in told:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0
