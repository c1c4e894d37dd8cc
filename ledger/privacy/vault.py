"""Vault protocol: stores a data key for each subject, and destroys it for good.

Subjects are named `user:alice` or `resource:ID`; keys have 256 bits, for AES-GCM. A vault keeps each key wrapped by the
master key. Destroying a key leaves a tombstone with who, when, and the receipt. `vault_jetstream.py` implements it with
a bucket of the broker, `MemoryVault` in memory.
"""

from __future__ import annotations

import contextlib
import os
from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kledger.contract.errors import SubjectForgotten, VaultDamaged, WrongMasterKey
from kledger.contract.seal_mark import MARK
from ledger.wire.seal_mac import Unsworn, Witness

if TYPE_CHECKING:
    from ledger.event import JsonObject  # which loads pydantic: not for the help of the command

KEY_BYTES = 32
NONCE_BYTES = 12
_NONCES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record of a destroyed key. `at` is RFC 3339, `by` an entity, `receipt` the receipt's id.

    `witness` and `unsworn` tell the key's seals from forged ones. A tombstone of an earlier version has no witness, so
    MACs cannot be checked; where `unsworn` is None as well, every seal counts.
    """

    name: str
    by: str
    at: str
    receipt: str
    witness: Witness | None = None
    unsworn: Unsworn | None = None

    def record(self, seals: JsonObject | None = None) -> bytes:
        """Serialize, with the vault's representation of `witness` and `unsworn`."""
        document = {"v": 1, "name": self.name, "by": self.by, "at": self.at, "receipt": self.receipt}
        return orjson.dumps(document if seals is None else {**document, "seals": seals})

    @classmethod
    def read(cls, record: bytes) -> Tombstone:
        """Parse the output of `record`, except its `seals`. Raises VaultDamaged."""
        try:
            document = orjson.loads(record)
            name, by, at, receipt = (str(document[part]) for part in ("name", "by", "at", "receipt"))
            return cls(name, by, at, receipt)
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise VaultDamaged(f"a tombstone of the vault cannot be read ({error}): restore the bucket") from error


@dataclass(frozen=True, slots=True)
class _JoinedWitness(Witness):
    """The witness of a key that others came before: what each of them sealed is vouched for."""

    others: tuple[Witness, ...] = ()

    def vouches(self, mac: object, subject: str, event_id: str, data: Any) -> bool:
        each = Witness.vouches
        return each(self, mac, subject, event_id, data) or any(
            each(other, mac, subject, event_id, data) for other in self.others
        )

    def vouches_for(self, mac: bytes, subject: str, event_id: str, data: bytes) -> bool:
        each = Witness.vouches_for
        return each(self, mac, subject, event_id, data) or any(
            each(other, mac, subject, event_id, data) for other in self.others
        )


def joined(secrets: Sequence[bytes]) -> Witness:
    """The witness with the first secret, which vouches for what those with the others vouch for as well."""
    return Witness(secrets[0]) if len(secrets) == 1 else _JoinedWitness(secrets[0], tuple(map(Witness, secrets[1:])))


def secrets_of(witness: Witness) -> list[bytes]:
    """The secrets of `joined`."""
    return [witness.secret, *(each.secret for each in getattr(witness, "others", ()))]


class DataKey:
    """A subject's key, unwrapped. Its repr hides the secret.

    `earlier` are secrets that it had before the vault lost them and a backup brought them back: they open what they
    sealed, and seal nothing more.
    """

    __slots__ = ("_begin", "_cipher", "_earlier", "name", "witness")

    def __init__(self, name: str, secret: bytes, *earlier: bytes) -> None:
        self.name = name
        self._begin = f"{MARK}{name}:".encode()
        self.witness = joined([Witness.of_key(name, each).secret for each in (secret, *earlier)])
        self._cipher = AESGCM(secret)
        self._earlier = tuple(map(AESGCM, earlier))

    def encrypt(self, value: bytes, about: bytes) -> bytes:
        """Nonce, ciphertext and tag; `about` is associated data, which has to be the same to decrypt."""
        nonce = _nonce()
        return nonce + self._cipher.encrypt(nonce, value, about)

    def seal(self, value: bytes, about: bytes) -> bytes:
        """The sealed string of what `encrypt` gives (ledger/privacy/sealed.py), in ASCII. One call, for bulk."""
        try:
            nonce = _nonces.pop()
        except IndexError:
            nonce = _nonce()
        return self._begin + b2a_base64(nonce + self._cipher.encrypt(nonce, value, about), newline=False)

    def decrypt(self, sealed: bytes, about: bytes) -> bytes:
        """Decrypt the output of `encrypt`. Raises cryptography's InvalidTag, ValueError when it is too short."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
        except InvalidTag:
            for cipher in self._earlier:
                with contextlib.suppress(InvalidTag):
                    return cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], about)
            raise

    def __repr__(self) -> str:
        return f"DataKey({self.name!r})"


_nonces: list[bytes] = []
"""Drawn and not used yet: one draw of many takes a tenth of the time of many draws."""


def _nonce() -> bytes:
    """A nonce that was never given before. Safe to call from several threads."""
    while True:
        try:
            return _nonces.pop()
        except IndexError:
            drawn = os.urandom(NONCE_BYTES * _NONCES_AT_ONCE)
            _nonces.extend([drawn[at : at + NONCE_BYTES] for at in range(0, len(drawn), NONCE_BYTES)])


os.register_at_fork(after_in_child=_nonces.clear)  # else parent and child would give the same ones

Held = DataKey | Tombstone
"""The record of a name that a vault has."""


class Keys(Protocol):
    """What is read of a vault."""

    async def look(self, names: Iterable[str]) -> dict[str, Held]:
        """The key or tombstone of each name that has one. Raises BrokerUnavailable, WrongMasterKey, VaultDamaged."""


class Vault(Keys, Protocol):
    """Stores data keys. A name first has no key, then one, then a tombstone for good."""

    async def obtain(self, name: str) -> DataKey:
        """The key of a name; creates and stores it if there is none. Raises SubjectForgotten (destroyed)."""

    async def destroy(self, name: str, *, by: str, at: str, receipt: str, unsworn: Unsworn | None = None) -> Tombstone:
        """Write a tombstone and erase the key. Idempotent: the first tombstone stays, and remains of a key are erased.

        With `unsworn`, the key's seals can be told from forged ones by the tombstone.
        """


def forgotten(tombstone: Tombstone) -> SubjectForgotten:
    """The error for a name whose key is destroyed."""
    return SubjectForgotten(
        f"{tombstone.name} was forgotten at {tombstone.at} (receipt {tombstone.receipt}): nothing more is kept under "
        "this name; whoever comes back takes another id",
        subject=tombstone.name,
        receipt=tombstone.receipt,
    )


def new_secret() -> bytes:
    return AESGCM.generate_key(8 * KEY_BYTES)


def wrap(master: bytes, name: str, secret: bytes) -> bytes:
    """Encrypt a data key with the master key, bound to this name."""
    return DataKey(name, master).encrypt(secret, f"data key\n{name}".encode())


def unwrap(master: bytes, name: str, wrapped: bytes) -> bytes:
    """Decrypt the output of `wrap`. Raises WrongMasterKey."""
    try:
        return DataKey(name, master).decrypt(wrapped, f"data key\n{name}".encode())
    except (InvalidTag, ValueError) as error:
        raise WrongMasterKey(
            f"the master key does not open the key of {name}: start the node with the master key of this ledger"
        ) from error


class MemoryVault:
    """A vault that lives as long as its process, for tests and notebooks."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}

    def held(self, names: Iterable[str]) -> dict[str, Held]:
        """`look`, without awaiting."""
        return {name: self._held[name] for name in names if name in self._held}

    async def look(self, names: Iterable[str]) -> dict[str, Held]:
        return self.held(names)

    async def obtain(self, name: str) -> DataKey:
        held = self._held.setdefault(name, DataKey(name, new_secret()))
        if isinstance(held, Tombstone):
            raise forgotten(held)
        return held

    async def destroy(self, name: str, *, by: str, at: str, receipt: str, unsworn: Unsworn | None = None) -> Tombstone:
        held = self._held.get(name)
        if not isinstance(held, Tombstone):
            witness = (held or await self.obtain(name)).witness if unsworn is not None else None
            held = self._held[name] = Tombstone(name, by, at, receipt, witness, unsworn)
        return held
