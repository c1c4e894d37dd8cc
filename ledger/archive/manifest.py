"""Manifest of a segment's directory: what its files are, signed with the key of the node that wrote them."""

from __future__ import annotations

import base64
import hashlib
import stat
from collections.abc import Mapping
from pathlib import Path

import orjson

from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey

NAME = "manifest.json"
FORMAT = "kledger-archive-1"
_PURPOSE = b"kledger archive 1\n"


class NotBelieved(Exception):
    """A file of the archive is not what was signed; `file` is its path in the archive, and the text says why."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(reason)
        self.file, self.reason = file, reason


def write_manifest(directory: Path, content: JsonObject, keys: SigningKeys) -> None:
    """Sign a manifest and write it into its directory. Raises UnsafeKeyFile, OSError."""
    key = keys.in_use()
    document = {**content, "format": FORMAT, "key": key.public.id}
    signature = base64.b64encode(key.sign(_message(document))).decode()
    write_private(directory / NAME, orjson.dumps({**document, "signature": signature}, option=orjson.OPT_INDENT_2))


def read_manifest(directory: Path, keys: Mapping[str, VerifyingKey]) -> JsonObject:
    """The manifest of a directory, signed by one of `keys`. Raises NotBelieved."""
    file = f"{directory.parent.name}/{directory.name}/{NAME}"
    try:
        document = orjson.loads(_content(directory / NAME))
        signature = base64.b64decode(document.pop("signature"), validate=True)
        key = keys.get(document["key"])
        known = document["format"] == FORMAT
    except OSError as error:
        raise NotBelieved(file, f"it cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotBelieved(file, "it is not a manifest") from error
    if not known or key is None or not key.signed(_message(document), signature):
        raise NotBelieved(file, "it is not signed by a key of this node")
    content: JsonObject = document
    return content


def checked_content(directory: Path, name: str, sha256: object) -> bytes:
    """The bytes of a file whose digest the manifest has. Raises NotBelieved."""
    file = f"{directory.parent.name}/{directory.name}/{name}"
    try:
        content = _content(directory / name)
    except OSError as error:
        raise NotBelieved(file, f"it cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise NotBelieved(file, "its bytes are not those that were signed")
    return content


def _content(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, also where it is none: who opened a pipe would wait for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("it is no file")
    return path.read_bytes()


def _message(document: JsonObject) -> bytes:
    return _PURPOSE + orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
