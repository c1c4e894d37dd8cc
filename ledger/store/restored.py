"""When was an event first kept, where the stream was made from a backup? What the stream and its messages say of it.

The views date events by the stream's time, so a restored event carries its first one in a header. Any writer can
set that header: it counts for positions up to the one in the stream's metadata alone, which only admin can set.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from kledger.contract.errors import BrokerMisconfigured, RestoreUnfinished
from ledger.event import JsonObject, StoredEvent
from ledger.wire.publication import MSG_ID

STORED_NS = "Ledger-Stored-Ns"
MESSAGE_ID = "Ledger-Message-Id"
"""The message id in base64, where `Nats-Msg-Id` cannot say it: the same id stands in the log twice, or is no text."""
RESTORED_TO = "ledger_restored_to"
RESTORING = "ledger_restoring"
"""What is being restored, `position:chain head`, until all of it is there and was compared."""


def restored_to(config: JsonObject) -> int:
    """The last position of a stream that came from a backup, 0 for a stream that did not.

    Raises RestoreUnfinished, BrokerMisconfigured.
    """
    metadata = config.get("metadata") or {}
    if RESTORING in metadata:
        raise RestoreUnfinished(
            f"the stream {config.get('name')} is half restored (up to {metadata[RESTORING].partition(':')[0]} events): "
            "run kledger restore again with the same backup, which goes on, or with --start-over"
        )
    stated = metadata.get(RESTORED_TO, "0")
    if not (stated.isascii() and stated.isdecimal()):
        raise BrokerMisconfigured(
            f"the metadata {RESTORED_TO} of the stream {config.get('name')} is {stated!r} and must be a position: set "
            "it to the last position that was restored"
        )
    return int(stated)


def headers_for(event: StoredEvent, *, plain_id: bool = True) -> dict[str, str]:
    """What an event is published with again; not `plain_id`: its id is not to be compared by the broker."""
    headers = {STORED_NS: str(event.stored_ns)}
    if event.message_id:
        if plain_id and event.message_id.isascii() and event.message_id.isprintable() and " " not in event.message_id:
            headers[MSG_ID] = event.message_id
        else:
            raw = event.message_id.encode("utf-8", "surrogateescape")
            headers[MESSAGE_ID] = base64.b64encode(raw).decode()
    return headers


def as_first_stored(event: StoredEvent, headers: Mapping[str, str] | None) -> StoredEvent:
    """A restored event as the log kept it first. One whose headers do not say stands as it is."""
    if not headers:
        return event
    stated = headers.get(STORED_NS, "")
    if stated.isascii() and stated.isdecimal():
        event = event._replace(stored_ns=int(stated))
    if MESSAGE_ID in headers:
        try:
            raw = base64.b64decode(headers[MESSAGE_ID], validate=True)
        except binascii.Error:
            return event
        event = event._replace(message_id=raw.decode("utf-8", "surrogateescape"))
    return event
