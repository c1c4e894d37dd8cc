"""An object store for tests: a server that speaks S3 and keeps buckets as folders, which can refuse and hang up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from pathlib import Path

from localbucket import S3Error, S3Handler

BUCKET, ACCESS, SECRET = "backups", "tester", "the secret of this test"
_EMPTY = '"d41d8cd98f00b204e9800998ecf8427e"'


@dataclass
class Store:
    """A running server, whose bucket BUCKET is a folder."""

    folder: Path
    port: int
    stops_after: int | None = None
    """So many more objects are kept; then every connection is cut."""
    stored: list[str] = field(default_factory=list)
    """The key of every object that was written, in order."""
    read: list[str] = field(default_factory=list)
    """The key of every object that was read, in order."""

    @property
    def environment(self) -> dict[str, str]:
        """What a client of it has in its environment."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.port}",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Every object under a prefix, by key."""
        files = (path for path in (self.folder / BUCKET).rglob("*") if path.is_file())
        found = {path.relative_to(self.folder / BUCKET).as_posix(): path.read_bytes() for path in files}
        return {key: content for key, content in found.items() if key.startswith(prefix)}


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """A server with one empty bucket, of one user."""
    (folder / BUCKET).mkdir(parents=True)
    store = Store(folder, 0)

    class Handler(S3Handler):  # type: ignore[misc]  # the package has no types
        data_root = folder
        disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its headers

        def _dispatch(self, action: Callable[[str, str], None]) -> None:
            def refused(_bucket: str, _key: str) -> None:
                self._read_body()
                raise S3Error(HTTPStatus.FORBIDDEN, "AccessDenied", "Access Denied.")

            if store.stops_after is not None and store.stops_after <= 0:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            known = f"Credential={ACCESS}/" in self.headers.get("Authorization", "")
            super()._dispatch(action if known else refused)

        def _put(self, bucket: str, key: str) -> None:
            if key.endswith("/"):  # the mark of a folder, for which this server has no place
                self._read_body()
                self._send(HTTPStatus.OK, headers={"ETag": _EMPTY})
                return
            super()._put(bucket, key)
            if "partNumber" not in self.query:
                self._note(key)

        def _complete_multipart_upload(self, bucket: str, key: str, body: bytes) -> None:
            super()._complete_multipart_upload(bucket, key, body)
            self._note(key)

        def _get(self, bucket: str, key: str, include_body: bool) -> None:
            super()._get(bucket, key, include_body)
            if include_body and key:
                store.read.append(key)

        def _note(self, key: str) -> None:
            store.stored.append(key)
            if store.stops_after is not None:
                store.stops_after -= 1

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    store.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
