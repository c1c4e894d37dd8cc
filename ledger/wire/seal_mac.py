"""Seal MAC: proves that the ledger itself sealed an event, also after the key that sealed it is destroyed.

Every event with a person's sealed text carries `sealmac`: a MAC over its subject, its id and its data as the log has
them, with the ciphertext. The MAC's key is derived from the person's data key and outlives it, in the tombstone. It
discloses nothing: everything that it authenticates is readable in the log.

An event that was sealed before MACs existed is unsworn: while the key still exists, it is recorded whether its seals
verified.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from binascii import b2a_base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

ATTRIBUTE = "sealmac"
"""The attribute of the envelope."""
UNFIT = -1
"""Instead of the number of a value: all seals verify, but the sealed content does not fit the event's schema."""

_ABOUT = b"kledger seal mac\n"
_PIECE_BYTES = 256 * 1024
_BLOCK = 64
_INNER, _OUTER = (bytes(byte ^ pad for byte in range(256)) for pad in (0x36, 0x5C))


@dataclass(frozen=True, slots=True)
class Witness:
    """Authenticates the events that one data key sealed. `secret` (32 bytes) decrypts nothing; repr hides it."""

    secret: bytes = field(repr=False)
    _inner: hashlib._Hash = field(init=False, repr=False, compare=False)
    _outer: hashlib._Hash = field(init=False, repr=False, compare=False)
    """The two hashes of an HMAC (RFC 2104) when they have read the key: to begin anew takes as long as the MAC of an
    event, and a copy of Python's HMAC object as long as a third of it."""

    def __post_init__(self) -> None:
        padded = self.secret.ljust(_BLOCK, b"\0")
        object.__setattr__(self, "_inner", hashlib.sha256(padded.translate(_INNER)))
        object.__setattr__(self, "_outer", hashlib.sha256(padded.translate(_OUTER)))

    @classmethod
    def of_key(cls, name: str, secret: bytes) -> Witness:
        """The witness of a data key: HKDF-Expand (RFC 5869) of the key, which is uniformly random."""
        return cls(hmac.digest(secret, _ABOUT + name.encode() + b"\x01", hashlib.sha256))

    def mac(self, subject: str, event_id: str, data: Any) -> str:
        """The MAC of an event: base64 of HMAC-SHA256. `data` is the event's data as JSON types."""
        return self._of(orjson.dumps((subject, event_id, data))).decode("ascii")

    def mac_of(self, subject: str, event_id: str, data: bytes) -> str:
        """The same of data that orjson has written."""
        return self._of(_message(subject, event_id, data)).decode()

    def vouches(self, mac: object, subject: str, event_id: str, data: Any) -> bool:
        """Whether `mac` is the MAC of this event."""
        return isinstance(mac, str) and hmac.compare_digest(mac.encode(), self.mac(subject, event_id, data).encode())

    def vouches_for(self, mac: bytes, subject: str, event_id: str, data: bytes) -> bool:
        """The same of data as JSON text; false also where the text is not spelled as the MAC's maker spelled it."""
        return hmac.compare_digest(mac, self._of(_message(subject, event_id, data)))

    def _of(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return b2a_base64(outer.digest(), newline=False)


def _message(subject: str, event_id: str, data: bytes) -> bytes:
    return b"%b,%b]" % (orjson.dumps((subject, event_id))[:-1], data)


@dataclass(frozen=True, slots=True)
class Unsworn:
    """The seals without a MAC that count after their key was destroyed: those up to `until`, except the `broken` ones.

    `broken` maps a position to the number, from 0, of the first value sealed for this person that did not verify,
    or to UNFIT.
    """

    until: int = 0
    broken: Mapping[int, int] = field(default_factory=dict)

    def counts(self, position: int, number: int) -> bool:
        """Whether the value with this number in the event at `position` verified."""
        first = self.broken.get(position)
        return position <= self.until if first is None else first == UNFIT or number < first

    def fits(self, position: int) -> bool:
        """False where the sealed content did not fit the event's schema."""
        return self.broken.get(position) != UNFIT

    def pieces(self) -> list[str]:
        """`broken` serialized as ASCII texts of at most 256 KiB; an empty list when it is empty."""
        if not self.broken:
            return []
        encoded, before = bytearray(), 0
        for position, number in sorted(self.broken.items()):
            encoded += _number(position - before) + _number(number - UNFIT)
            before = position
        text = base64.b64encode(zlib.compress(bytes(encoded), 9)).decode("ascii")
        return [text[start : start + _PIECE_BYTES] for start in range(0, len(text), _PIECE_BYTES)]

    @classmethod
    def read(cls, until: int, pieces: list[str]) -> Unsworn:
        """Parse the output of `pieces`. Raises ValueError, zlib.error."""
        if not pieces:
            return cls(until)
        numbers = _numbers(zlib.decompress(base64.b64decode("".join(pieces), validate=True)))
        broken, position = dict[int, int](), 0
        for step in numbers:
            position += step
            broken[position] = next(numbers) + UNFIT
        return cls(until, broken)


def _number(value: int) -> bytes:
    """Encode as a varint: seven bits in each byte, the lowest first; the highest bit means that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _numbers(encoded: bytes) -> Iterator[int]:
    """Decode a sequence of varints."""
    value = shift = 0
    for byte in encoded:
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            yield value
            value = shift = 0
