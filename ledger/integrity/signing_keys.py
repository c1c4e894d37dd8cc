"""Signing keys of a node: the key in use, its rotation, and the public keys that verify older signatures.

In the directory `keys` of a node, readable by its owner alone:

- `signing.pem`: the private key in use, created at the first start (Ed25519, PKCS#8);
- `public/KEY.pem`: every public key that was ever in use; KEY is the start of its SHA-256;
- `succession.jsonl`: a line for each replacement, signed by the old key and the new one, so that a verifier that
  trusts one of them can derive which other keys belong to the same node.
"""

from __future__ import annotations

import base64
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson
import structlog
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from kledger.contract.errors import InvalidPayload, UnsafeKeyFile
from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.runtime.synced import append_lines, sync

log = structlog.get_logger(__name__)

_SUCCESSION = b"kledger key succession 1\n"


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key and its id."""

    id: str
    key: Ed25519PublicKey

    @classmethod
    def of(cls, key: Ed25519PublicKey) -> VerifyingKey:
        return cls(sha256(key.public_bytes_raw()).hexdigest()[:32], key)

    @classmethod
    def from_text(cls, text: str) -> VerifyingKey:
        """Parse a public key in PEM, or its 32 bytes in base64. Raises InvalidPayload."""
        try:
            if "BEGIN" in text:
                key = serialization.load_pem_public_key(text.encode())
                if not isinstance(key, Ed25519PublicKey):
                    raise ValueError("it is a key of another kind")
            else:
                key = Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))
        except ValueError as error:
            raise InvalidPayload(f"not an Ed25519 public key: {error}", errors=[]) from error
        return cls.of(key)

    def text(self) -> str:
        """The 32 bytes of the key in base64."""
        return base64.b64encode(self.key.public_bytes_raw()).decode()

    def pem(self) -> str:
        return self.key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ).decode()

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether `signature` over `message` was made with the private key."""
        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key in use at one moment: what it signs names it, whoever replaces it meanwhile."""

    public: VerifyingKey
    private: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes."""
        return self.private.sign(message)


class SigningKeys:
    """The keys of one node. A rotation by another process is detected before the next signature."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "signing.pem"
        self._private: Ed25519PrivateKey | None = None
        self._seen: tuple[int, int] | None = None

    @classmethod
    def open(cls, directory: Path) -> SigningKeys:
        """The keys in `directory`; creates a first key where there is none. Raises UnsafeKeyFile, OSError.

        The public key of the one in use is written again where its file is gone or damaged.
        """
        keys = cls(directory)
        directory.mkdir(parents=True, exist_ok=True)
        _private_to_owner(directory, 0o700)
        if not keys._file.exists():
            if earlier := public_keys(directory):
                log.warning(
                    "the signing key is gone, and a new one is made: what the earlier ones signed stays valid, and no "
                    "succession leads from them to it",
                    file=str(keys._file),
                    earlier=sorted(earlier),
                )
            write_private(keys._file, _pem(_publish(directory, Ed25519PrivateKey.generate())))
        if keys.current().id not in public_keys(directory):
            _publish(directory, keys._key())
        return keys

    def current(self) -> VerifyingKey:
        """The public key of the key in use. Raises UnsafeKeyFile."""
        return VerifyingKey.of(self._key().public_key())

    def in_use(self) -> SigningKey:
        """The key in use, for one document that names it and is signed with it. Raises UnsafeKeyFile."""
        private = self._key()
        return SigningKey(VerifyingKey.of(private.public_key()), private)

    def rotate(self) -> tuple[VerifyingKey, VerifyingKey]:
        """Replace the key by a new one; returns the old and the new public key. Raises UnsafeKeyFile.

        Of several at once each replaces the key that the one before has made.
        """
        with _alone_in(self.directory):
            return self._rotate()

    def _rotate(self) -> tuple[VerifyingKey, VerifyingKey]:
        old, fresh = self._key(), _publish(self.directory, Ed25519PrivateKey.generate())
        before, after = VerifyingKey.of(old.public_key()), VerifyingKey.of(fresh.public_key())
        message = _succession(before, after)
        line: JsonObject = {
            "old": before.text(),
            "new": after.text(),
            "signed_by_old": base64.b64encode(old.sign(message)).decode(),
            "signed_by_new": base64.b64encode(fresh.sign(message)).decode(),
        }
        append_lines(self.directory / "succession.jsonl", orjson.dumps(line) + b"\n")
        write_private(self._file, _pem(fresh))
        return before, after

    def _key(self) -> Ed25519PrivateKey:
        try:
            status = self._file.stat()
        except OSError as error:
            raise UnsafeKeyFile(f"the signing key {self._file} cannot be read: {error.strerror}") from error
        if self._private is None or self._seen != (status.st_ino, status.st_mtime_ns):
            self._private, self._seen = _read_key(self._file), (status.st_ino, status.st_mtime_ns)
        return self._private


def public_keys(directory: Path) -> dict[str, VerifyingKey]:
    """All public keys of a node, by id; a file without a valid key is skipped."""
    keys = {}
    for path in sorted((directory / "public").glob("*.pem")):
        try:
            key = VerifyingKey.from_text(path.read_text("ascii"))
        except (InvalidPayload, ValueError):
            continue
        keys[key.id] = key
    return keys


def trusted_with(anchor: VerifyingKey, directory: Path) -> dict[str, VerifyingKey]:
    """The keys of the same node as `anchor`, connected to it by replacements that both keys signed."""
    trusted = {anchor.id: anchor}
    try:
        lines = (directory / "succession.jsonl").read_bytes().splitlines()
    except FileNotFoundError:
        return trusted
    pairs = list(_replacements(lines))
    grown = True
    while grown:
        grown = False
        for old, new in pairs:
            if (old.id in trusted) != (new.id in trusted):
                trusted |= {old.id: old, new.id: new}
                grown = True
    return trusted


def _replacements(lines: Iterable[bytes]) -> Iterable[tuple[VerifyingKey, VerifyingKey]]:
    """The replacements of a succession file whose two signatures are valid."""
    for line in lines:
        try:
            entry: Mapping[str, str] = orjson.loads(line)
            old, new = VerifyingKey.from_text(entry["old"]), VerifyingKey.from_text(entry["new"])
            by_old, by_new = (base64.b64decode(entry[name]) for name in ("signed_by_old", "signed_by_new"))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidPayload):
            continue
        message = _succession(old, new)
        if old.signed(message, by_old) and new.signed(message, by_new):
            yield old, new


def _succession(old: VerifyingKey, new: VerifyingKey) -> bytes:
    return _SUCCESSION + old.key.public_bytes_raw() + new.key.public_bytes_raw()


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep other processes from replacing the key meanwhile; a killed one keeps nobody out."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _publish(directory: Path, private: Ed25519PrivateKey) -> Ed25519PrivateKey:
    """Store the public key durably before the private one is used, so that every signature can be verified."""
    key = VerifyingKey.of(private.public_key())
    public = directory / "public"
    public.mkdir(exist_ok=True)
    write_private(public / f"{key.id}.pem", key.pem().encode())
    sync(public)
    return private


def _pem(private: Ed25519PrivateKey) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read_key(path: Path) -> Ed25519PrivateKey:
    _private_to_owner(path, 0o600)
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise UnsafeKeyFile(
            f"{path} is not a private key that can be read: {error}; put the right file there, or take it away "
            "for a new key (checkpoints of the old one stay valid)"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnsafeKeyFile(f"{path} is a key of another kind: an Ed25519 key is needed")
    return key


def _private_to_owner(path: Path, rights: int) -> None:
    """Refuse a file that other users may read or write; a directory gets the right mode instead."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077 == 0:
        return
    if path.is_dir():
        path.chmod(rights)
        return
    raise UnsafeKeyFile(
        f"{path} may be read or written by other users (mode {mode:o}): run chmod 600 {path.name} there, and "
        "replace the key with kledger key rotate if others could have read it"
    )
