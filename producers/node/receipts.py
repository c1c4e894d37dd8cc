"""Orders and receipts of forgetting: an order while it is carried out, and a receipt when it is done.

    <data>/receipts/<id>.pending.json   in progress, resumed at the next start of the node
    <data>/receipts/<id>.json           {"receipt": {…}, "signature": {…} or null}

Neither holds text of the person. The order holds hashes of embedded texts, and is deleted when the receipt is written.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson
import structlog

from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.runtime.synced import sync

log = structlog.get_logger(__name__)

Sign = Callable[[bytes], JsonObject]
"""Maps the bytes to sign (the receipt as JSON with sorted keys) to the signature in the receipt's file."""

_ID = re.compile(r"[a-z0-9-]{1,80}")
_PENDING = ".pending.json"


@dataclass(frozen=True, slots=True)
class Order:
    """Whom to forget, who requested it and when (RFC 3339). `hashes` are SHA-256 of texts that may be embedded."""

    receipt: str
    subject: str
    by: str
    at: str
    hashes: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)


def new_order(subject: str, by: str) -> Order:
    """A new order with the current time."""
    now = datetime.now(UTC)
    return Order(f"forget-{now:%Y%m%d}-{uuid.uuid4().hex[:12]}", subject, by, moment(now))


def moment(now: datetime | None = None) -> str:
    """A time in the format of orders and receipts; by default the current one."""
    return (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Receipts:
    """The orders and receipts of one node."""

    def __init__(self, directory: Path, sign: Sign | None = None) -> None:
        self._directory = directory
        self._sign = sign
        self.unreadable = list[str]()
        """The files of orders that `pending` found and could not read."""

    def pending(self) -> list[Order]:
        """Pending orders, oldest first."""
        orders, self.unreadable = [], []
        for path in sorted(self._directory.glob(f"*{_PENDING}")):
            try:
                with contextlib.suppress(FileNotFoundError):  # carried out meanwhile
                    orders.append(Order(**orjson.loads(path.read_bytes())))
            except (orjson.JSONDecodeError, TypeError, OSError) as error:  # our writes are atomic: another changed it
                log.error("an order to forget cannot be read", file=str(path), error=str(error))
                self.unreadable.append(f"{self._directory.name}/{path.name}")
        return orders

    def is_pending(self, receipt: str) -> bool:
        """Whether the order with this receipt is not carried out yet."""
        return self._path(receipt, _PENDING).exists()

    def begin(self, order: Order) -> None:
        """Write an order durably; it stays until `finish`."""
        self._write(self._path(order.receipt, _PENDING), orjson.dumps(asdict(order), option=orjson.OPT_INDENT_2))

    def drop(self, order: Order) -> None:
        """Delete the order: it is carried out under another receipt."""
        self._path(order.receipt, _PENDING).unlink(missing_ok=True)

    def finish(self, order: Order, receipt: JsonObject) -> JsonObject:
        """Write the receipt, signed where the node signs, and delete the order; returns what was written."""
        signed = orjson.dumps(receipt, option=orjson.OPT_SORT_KEYS)
        document = {"receipt": receipt, "signature": self._sign(signed) if self._sign else None}
        self._write(self._path(order.receipt, ".json"), orjson.dumps(document, option=orjson.OPT_INDENT_2))
        self._path(order.receipt, _PENDING).unlink(missing_ok=True)
        return document

    def found(self, receipt: str) -> JsonObject | None:
        """The receipt with this id, None where there is none; what cannot be read is set aside, and written again."""
        path = self._path(receipt, ".json")
        if not _ID.fullmatch(receipt) or not path.exists():
            return None
        try:
            document: JsonObject = orjson.loads(path.read_bytes())
        except orjson.JSONDecodeError as error:
            log.error("a receipt cannot be read, and is written again", file=str(path), error=str(error))
            path.replace(path.with_name(f"{path.name}.damaged"))
            return None
        return document

    def _path(self, receipt: str, ending: str) -> Path:
        return self._directory / f"{receipt}{ending}"

    def _write(self, path: Path, content: bytes) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        write_private(path, content)
        sync(self._directory)
