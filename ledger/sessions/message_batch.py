"""Messages as the records that are stored together: as many of them as one batch takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.event import JsonObject
from ledger.privacy.vault import DataKey
from ledger.sessions.port import NewRecord
from ledger.sessions.subjects import SessionKey
from ledger.sessions.words import Message, written

BATCH_RECORDS, BATCH_BYTES = 500, 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages in their order, each with its bytes as stored; and the records of all."""

    messages: list[Message] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    records: list[NewRecord] = field(default_factory=list)


def first_batch(
    key: SessionKey,
    said: Sequence[JsonObject],
    count: int,
    *,
    at_us: int,
    trace_id: str | None,
    data_key: DataKey | None,
) -> MessageBatch:
    """The first of these messages, one at least; `count` is how many the session has. Raises PayloadTooLarge."""
    batch = MessageBatch()
    for number, document in enumerate(said, count + 1):
        words = {name: value for name, value in document.items() if name != "id"}
        message = Message(document["id"], number, at_us, words, trace_id=trace_id)
        about = {"id": message.id, "n": number, "at": at_us}
        if trace_id is not None:
            about["trace"] = trace_id
        first, *parts = written(about, words, key, data_key)
        records = [NewRecord(key.one("said", message.id), first, 0)]
        records += [NewRecord(key.one("part", message.id, at), body) for at, body in enumerate(parts, 1)]
        size = len(first) + sum(map(len, parts))
        too_many = len(batch.records) + len(records) > BATCH_RECORDS
        if batch.messages and (too_many or sum(batch.sizes) + size > BATCH_BYTES):
            break
        batch.messages.append(message)
        batch.sizes.append(size)
        batch.records.extend(records)
    return batch
