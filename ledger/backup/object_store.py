"""Object store as the place of a backup: a bucket of AWS, or of any server that speaks its protocol.

The usual variables of AWS say who asks (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_PROFILE),
where (AWS_REGION), and at which server (AWS_ENDPOINT_URL_S3, else AWS_ENDPOINT_URL). An object appears whole or not at
all. A store keeps no lock: one of this machine keeps out its other runs, and before the manifest is replaced it is read
again, so that a run that finds another one's stops.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pyarrow import fs

from kledger.contract.addresses import is_http_address
from kledger.contract.errors import BackupMismatch, InvalidPayload, ObjectStoreFailed
from ledger.backup.address import StoreAddress
from ledger.backup.place import BESIDE, EVENTS, MANIFEST

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_CONNECT_SECONDS, _REQUEST_SECONDS = 10, 60
_PIECE = 4 * 1024 * 1024
_MOST_SAID = 300

Reason = Literal["no_bucket", "no_rights", "no_connection", "failed"]
# What the library says of a failure, as far as it is one that somebody can do something about.
_SAID: Mapping[Reason, tuple[str, ...]] = {
    "no_bucket": ("NO_SUCH_BUCKET",),
    "no_rights": ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "TOKEN", "CREDENTIALS", "HTTP status 403"),
    "no_connection": ("NETWORK_CONNECTION", "TIMEOUT", "SLOW_DOWN", "UNAVAILABLE", "INTERNAL_FAILURE"),
}
_WHERE = "in the environment of what reaches it: of the node for its backup, of the command for all else"
_ADVICE: Mapping[Reason, str] = {
    "no_bucket": "create the bucket, or correct the address",
    "no_rights": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY have to be those of somebody who may list, read, write "
    f"and remove objects there, {_WHERE}",
    "no_connection": f"see that the server can be reached, and run it again: it goes on where it ended; AWS_REGION and "
    f"AWS_ENDPOINT_URL_S3 count {_WHERE}",
    "failed": "what is there is whole; run it again",
}


@contextmanager
def object_store(address: StoreAddress) -> Iterator[ObjectStore]:
    """A place in an object store, with a directory of this machine for drafts.

    Raises InvalidPayload (the variables), ObjectStoreFailed (there is no such bucket, or it cannot be reached).
    """
    with tempfile.TemporaryDirectory(prefix="kledger-backup-") as scratch:
        store = ObjectStore(address, _file_system(), Path(scratch))
        store.check_bucket()
        yield store


class ObjectStore:
    """The objects of one backup. Methods raise ObjectStoreFailed, and FileNotFoundError as Place says."""

    def __init__(self, address: StoreAddress, files: fs.FileSystem, scratch: Path) -> None:
        self.address = address
        self._files, self._scratch = files, scratch
        self._manifest: bytes | None = None

    def __str__(self) -> str:
        return str(self.address)

    def check_bucket(self) -> None:
        with self._asked():
            if self._files.get_file_info(self.address.bucket).type is fs.FileType.NotFound:
                raise _failed(self.address, "no_bucket", f"there is no bucket {self.address.bucket}")

    def sizes(self) -> Mapping[str, int]:
        with self._asked():
            try:
                found = self._files.get_file_info(fs.FileSelector(self.address.path, recursive=True))
            except FileNotFoundError:
                return {}
        before = len(self.address.path) + 1
        return {info.path[before:]: info.size for info in found if info.type is fs.FileType.File}

    def read(self, name: str) -> bytes:
        with self._asked(), self._files.open_input_stream(self._path(name)) as source:
            content: bytes = source.read()
        if name == MANIFEST:
            self._manifest = content
        return content

    def write(self, name: str, content: bytes) -> None:
        """Raises BackupMismatch when another run has replaced the manifest meanwhile."""
        if name == MANIFEST:
            self._check_alone()
        with self._asked(), self._files.open_output_stream(self._path(name)) as target:
            target.write(content)
        if name == MANIFEST:
            self._manifest = content

    def draft(self, name: str) -> Path:
        return self._scratch / f"{Path(name).name}.part"

    def same(self, file: Path, name: str) -> Path:  # noqa: ARG002  # nothing is copied before it is sent
        return file

    def put(self, draft: Path, name: str) -> None:
        size = draft.stat().st_size
        with draft.open("rb") as source, self._asked(), self._files.open_output_stream(self._path(name)) as target:
            shutil.copyfileobj(source, target, _PIECE)
        with self._asked():
            there = self._files.get_file_info(self._path(name)).size
        if there != size:
            raise _failed(self.address, "failed", f"{name} has {there} bytes there instead of {size:,}")
        if draft.is_relative_to(self._scratch):
            draft.unlink()

    def remove(self, name: str) -> None:
        with self._asked(), contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._path(name))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        path = self._scratch / f"{Path(name).name}.read"
        try:
            private = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with (
                os.fdopen(private, "wb") as target,
                self._asked(),
                self._files.open_input_stream(self._path(name)) as source,
            ):
                shutil.copyfileobj(source, target, _PIECE)
            yield path
        finally:
            path.unlink(missing_ok=True)

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        with self._lock():
            new = MANIFEST not in self.sizes()
            try:
                yield
            except BaseException:
                with contextlib.suppress(ObjectStoreFailed):
                    # Without a manifest of its own it was another run that began here.
                    mine = new and self._manifest is not None
                    if mine and not any(name.startswith(f"{EVENTS}/") for name in self.sizes()):
                        for name in (*BESIDE, MANIFEST):
                            self.remove(name)
                raise

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep out the other runs of this machine's user. Raises BackupMismatch."""
        address = f"{_server_named()[1]} {self}"  # a bucket of another server is another bucket
        name = f"kledger-backup-{os.getuid()}-{sha256(address.encode()).hexdigest()[:16]}.lock"
        path = Path(tempfile.gettempdir()) / name
        with self._held(path):
            try:
                yield
            finally:  # while it is held: who opened it meanwhile finds that it is gone
                path.unlink(missing_ok=True)

    @contextmanager
    def _held(self, path: Path) -> Iterator[None]:
        """Hold the lock of the file that has this name. Raises BackupMismatch."""
        while True:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600), "w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise BackupMismatch(f"another backup into {self} is under way: wait for its end") from error
                if _is_at(path, lock.fileno()):
                    yield
                    return

    def _path(self, name: str) -> str:
        return f"{self.address.path}/{name}"

    def _check_alone(self) -> None:
        before = self._manifest
        try:
            now: bytes | None = self.read(MANIFEST)
        except FileNotFoundError:
            now = None
        if now != before:
            self._manifest = before
            raise BackupMismatch(f"another backup into {self} was under way at the same time: run it again")

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Tell what the library says of a failure in our words."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno is not None:  # of a file of this machine
                raise
            raise _said(self.address, str(error)) from error


def _is_at(path: Path, file: int) -> bool:
    """Whether the open file still has this name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file))
    return False


def _server_named() -> tuple[str, str]:
    """The variable that names a server, and what it says; both empty where none does, which is AWS itself."""
    return next(((name, said) for name in ENDPOINTS if (said := os.environ.get(name))), ("", ""))


def _file_system() -> fs.FileSystem:
    variable, said = _server_named()
    endpoint = {}
    if variable:
        if not is_http_address(said) or urlsplit(said).path.strip("/"):
            raise InvalidPayload(
                f"{variable} is no address of a server: write http://HOST:PORT or https://HOST",
                errors=[{"field": variable, "reason": "is no address of a server"}],
            )
        server = urlsplit(said)
        endpoint = {"scheme": server.scheme, "endpoint_override": server.netloc}
    return fs.S3FileSystem(
        connect_timeout=_CONNECT_SECONDS, request_timeout=_REQUEST_SECONDS, allow_delayed_open=True, **endpoint
    )


def _said(address: StoreAddress, text: str) -> ObjectStoreFailed:
    reason: Reason = next((why for why, words in _SAID.items() if any(word in text for word in words)), "failed")
    return _failed(address, reason, text[:_MOST_SAID])


def _failed(address: StoreAddress, reason: Reason, text: str) -> ObjectStoreFailed:
    return ObjectStoreFailed(
        f"the object store failed at {address}: {text.rstrip('.')}; {_ADVICE[reason]}", reason=reason
    )
