"""Token book of a running node: validates tokens against a file that may change at any time.

The file is checked before every answer (one stat), so that creation and revocation take effect at once. A token is
required where there is such a file, also one without tokens, as a restore makes it. Once required, tokens stay so until
the node stops: a lost or damaged file opens nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import structlog

from kledger.contract.errors import LedgerError, TokenExpired, TokenRevoked, Unauthenticated
from producers.access.principal import Principal
from producers.access.tokens import TokenRecord, hash_of, read_records

log = structlog.get_logger(__name__)

_ABSENT = (0, 0, 0, 0)
_HOW = "send Authorization: Bearer with a token of this node (kledger token create; KLEDGER_TOKEN for our programs)"


class TokenBook:
    """The tokens of one node; thread-safe.

    `always` requires a token even where the file has none: for a node that other machines can reach.
    Raises NodeMisconfigured when the file cannot be read at the start.
    """

    def __init__(self, path: Path | None, *, always: bool = False) -> None:
        self._path = path
        self._file = "" if path is None else str(path)  # a path is made a text for each look at the file
        self._lock = threading.Lock()
        self._seen = _ABSENT
        self._records: dict[str, TokenRecord] = {}
        self._required = always
        if path is not None:
            self._seen = self._stamp()
            self._set(read_records(path))

    @property
    def required(self) -> bool:
        """Whether a request needs a token now."""
        self._reload()
        return self._required

    @property
    def known(self) -> int:
        """The number of tokens, valid or not."""
        return len(self._records)

    def users(self) -> frozenset[str]:
        """The users that valid tokens are bound to."""
        self._reload()
        now = datetime.now(UTC)
        valid = [record for record in self._records.values() if record.state(now) == "active"]
        return frozenset(user for record in valid for user in record.bound.get("user", ()))

    def principal_of(self, values: Sequence[bytes]) -> Principal | None:
        """The principal of a request's Authorization headers; None where no token is required and none is sent.

        Raises Unauthenticated, TokenExpired, TokenRevoked.
        """
        required = self.required
        if not values:
            if required:
                raise Unauthenticated(f"this node asks for a token: {_HOW}")
            return None
        if len(values) > 1:
            raise Unauthenticated("there are several Authorization headers: send one")
        scheme, _, token = values[0].decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated(f"the Authorization header is not of the form Bearer TOKEN: {_HOW}")
        if not required:
            raise Unauthenticated("this node has no tokens, and yours is not known here: leave it out (KLEDGER_TOKEN)")
        return self.holder(token.strip()).principal

    def holder(self, token: str) -> TokenRecord:
        """The record of a valid token. Raises Unauthenticated, TokenExpired, TokenRevoked."""
        return self.still(hash_of(token))

    def still(self, digest: str) -> TokenRecord:
        """The record of the valid token with this hash. Raises as `holder` does."""
        self._reload()
        record = self._records.get(digest)
        if record is None:
            raise Unauthenticated(f"the token is none of this node: {_HOW}")
        state = record.state(datetime.now(UTC))
        if state == "revoked":
            raise TokenRevoked(f"token {record.id} was revoked: ask whoever runs the node for another one")
        if state == "expired":
            raise TokenExpired(f"token {record.id} was good until {record.expires}: ask for another one")
        return record

    def _stamp(self) -> tuple[int, int, int, int]:
        if self._seen == _ABSENT and not os.access(self._file, os.F_OK):  # half of what an error of `stat` takes
            return _ABSENT
        try:
            status = os.stat(self._file)  # noqa: PTH116  # Path.stat takes twice as long, on every request
        except OSError:
            return _ABSENT
        return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size

    def _reload(self) -> None:
        if self._path is None or self._stamp() == self._seen:
            return
        with self._lock:
            now = self._stamp()
            if now == self._seen:
                return
            self._seen = now
            try:
                self._set(read_records(self._path))
            except LedgerError as error:  # keep the tokens read before
                self._required = True  # who made a first one means to have them asked for
                log.error("the tokens changed and cannot be read; those known before still count", error=error.message)

    def _set(self, records: list[TokenRecord]) -> None:
        self._required = self._required or self._seen != _ABSENT
        if not records and self._records:
            log.error("there are no tokens any more; requests still need one", file=str(self._path))
        elif not records and self._required:
            log.warning("there are no tokens yet, and requests need one: kledger token create", file=str(self._path))
        self._records = {record.sha256: record for record in records}


NO_TOKENS = TokenBook(None)
"""For an interface that requires no token."""
