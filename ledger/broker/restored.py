"""Original timestamps of restored events: what the headers of a restored message and the stream's metadata say.

The views date events by the stream's time, so a restored event carries its original time in a header. Any writer can
set that header: it counts only up to the position in the stream's metadata, which only admin can set.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Mapping

from kledger.contract.errors import BrokerMisconfigured, RestoreUnfinished
from ledger.event import JsonObject, StoredEvent
from ledger.wire.publication import MSG_ID

STORED_NS = "Ledger-Stored-Ns"
MESSAGE_ID = "Ledger-Message-Id"
"""The message id in base64, where `Nats-Msg-Id` cannot hold it: the id is in the log twice, or is not plain text."""
_AS_RESTORED = re.compile(
    rf"NATS/1\.0\r\n{STORED_NS}: ([0-9]+)\r\n{MSG_ID}: ([!-~]+)(?:\r\nNats-Expected-Last-Sequence: [0-9]+)?"
    r"(?:\r\nNats-Batch-Id: [!-~]+\r\nNats-Batch-Sequence: [0-9]+(?:\r\nNats-Batch-Commit: 1)?)?\r\n\r\n".encode()
)
RESTORED_TO = "ledger_restored_to"
RESTORING = "ledger_restoring"
"""Metadata of a restore in progress, `position:chain head`, until all events are there and were verified."""
WORDS_OF_RESTORE = "ledger_restoring_words"
"""Metadata of a restore in progress that began where there were no words of sessions: all that are there are its."""
RESTORED_FROM = "ledger_restored_from"
"""Metadata of a restore that came to its end: what RESTORING was, so that it is told from one of another backup."""
MARKS = (RESTORED_TO, RESTORED_FROM, RESTORING, WORDS_OF_RESTORE)


def restored_to(config: JsonObject) -> int:
    """The last position that was restored from a backup, 0 for a stream that was not restored.

    Raises RestoreUnfinished, BrokerMisconfigured.
    """
    metadata = config.get("metadata") or {}
    if RESTORING in metadata:
        raise RestoreUnfinished(
            f"the stream {config.get('name')} is half restored (up to {metadata[RESTORING].partition(':')[0]} events): "
            "run kledger restore-backup again with the same backup, or with the one that an interrupted kledger repair "
            "wrote (…-repaired-…), which goes on; with --start-over another backup takes its place"
        )
    text = metadata.get(RESTORED_TO, "0")
    if not (text.isascii() and text.isdecimal()):
        raise BrokerMisconfigured(
            f"the metadata {RESTORED_TO} of the stream {config.get('name')} is {text!r} and must be a position: set "
            "it to the last position that was restored"
        )
    return int(text)


def headers_for(event: StoredEvent, *, plain_id: bool = True) -> dict[str, str]:
    """The headers to publish a restored event with; without `plain_id` the broker does not dedupe by its message id."""
    headers = {STORED_NS: str(event.stored_ns)}
    if event.message_id:
        if plain_id and event.message_id.isascii() and event.message_id.isprintable() and " " not in event.message_id:
            headers[MSG_ID] = event.message_id
        else:
            raw = event.message_id.encode("utf-8", "surrogateescape")
            headers[MESSAGE_ID] = base64.b64encode(raw).decode()
    return headers


def as_first_stored(event: StoredEvent, headers: Mapping[str, str] | None) -> StoredEvent:
    """A restored event with its original time and message id; unchanged where the headers do not have them."""
    if not headers:
        return event
    stored_ns, message_id = first_stored(
        event.stored_ns, event.message_id, headers.get(STORED_NS), headers.get(MESSAGE_ID)
    )
    return event._replace(stored_ns=stored_ns, message_id=message_id)


def told_in_batch(block: bytes | None) -> tuple[int, str] | None:
    """The original time and message id of most restored events, by their whole header block; None of all others.

    It takes a third of the time that looking for each header does.
    """
    told = _AS_RESTORED.fullmatch(block) if block else None
    return (int(told[1]), told[2].decode()) if told else None


def first_stored(stored_ns: int, message_id: str, told_ns: str | None, told_id: str | None) -> tuple[int, str]:
    """The original time and message id, by the values of STORED_NS and MESSAGE_ID; as they are where these say none."""
    if told_ns and told_ns.isascii() and told_ns.isdecimal():
        stored_ns = int(told_ns)
    if told_id is not None:
        with contextlib.suppress(binascii.Error):
            message_id = base64.b64decode(told_id, validate=True).decode("utf-8", "surrogateescape")
    return stored_ns, message_id
