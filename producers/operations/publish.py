"""How does a fact of a door reach the log? The one write path: every door's events pass here.

Ids that a retry repeats, lineage lifted from what was sent, and the count of what was appended.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kledger.contract.errors import IdempotencyMismatch, InvalidPayload
from ledger.event import Appended, Fact, Lineage, NewEvent, new_event_id
from ledger.events.bounds import MOST_SHORT
from ledger.events.knowledge import Case, Source
from ledger.privacy.seal_mark import MARK
from ledger.privacy.sealed import HINT, says_mark
from ledger.runtime import tracing
from ledger.stream import Ledger
from ledger.wire.envelope import refuse_nul

# Names ids that follow from what was said; a change here would make every retry a new event.
NAMESPACE = uuid.UUID("6f0f3f5e-0d2a-5d0c-9a53-3f0f7c6f4a51")

SLICE = 250
"""Events appended at once: encoding more would hold the event loop for more than a few milliseconds."""
MAX_REFERENCE = MOST_SHORT
"""Characters that an envelope takes for each part of its lineage."""


def _unheard(_what: str, _seconds: float) -> None:
    """Nobody measures."""


def _unnoted(_events: Sequence[NewEvent], _kept: Sequence[Appended]) -> None:
    """Nobody remembers whose writes these were."""


@dataclass(slots=True)
class Tally:
    """What the doors of one process did since it started; the metrics read it."""

    appended: Counter[str] = field(default_factory=Counter)
    """Events kept, by event name; retries that were kept before are not counted."""
    searches: int = 0
    searched_at: float = float("-inf")
    """When the last search began, by the clock of `time.monotonic`."""
    bulk_rests_until: float = float("-inf")
    """Until when all work in bulk rests, by the same clock."""
    folded: int = 0
    """Events that the live view took up."""
    took: Callable[[str, float], None] = _unheard
    """Told how long an `append`, a `search`, a `fold` took, in seconds."""
    wrote: Callable[[Sequence[NewEvent], Sequence[Appended]], None] = _unnoted
    """Told of the events that were appended, and where they are kept."""
    recalls_lost: int = 0
    """Searches answered although their recall could not be recorded."""


async def publish(ledger: Ledger, tally: Tally, events: Sequence[NewEvent]) -> list[Appended]:
    """Append events in order, up to SLICE of them whole or not at all.

    Raises InvalidPayload (NUL characters), PayloadTooLarge, IllegalSubject, VersionConflict,
    BrokerUnavailable; then nothing of the failed slice is kept, and what came before it is.
    """
    kept: list[Appended] = []
    for start in range(0, len(events), SLICE):
        part = events[start : start + SLICE]
        for event in part:
            refuse_unkeepable(event.fact)
        kept += await publish_judged(ledger, tally, part)
    return kept


async def publish_judged(ledger: Ledger, tally: Tally, events: Sequence[NewEvent]) -> list[Appended]:
    """Append events that were found keepable one by one: many of them in as few and large batches as there can be.

    Raises PayloadTooLarge, IllegalSubject, VersionConflict, BrokerUnavailable; then what came before is kept.
    """
    if not events:
        return []
    began = time.perf_counter()
    with tracing.span("append", kledger__type=events[0].fact.name, kledger__events=len(events)):
        done = [await ledger.append(events[0])] if len(events) == 1 else await ledger.append_many(events)
    tally.took("append", time.perf_counter() - began)
    tally.wrote(events, done)
    tally.appended.update(e.fact.name for e, k in zip(events, done, strict=True) if not k.duplicate)
    return done


def may_be_unkeepable(body: bytes) -> bool:
    """False for JSON in which nothing is that refuse_unkeepable refuses; True says no more than that it may be."""
    return b"\\u0000" in body or HINT in body


def refuse_unkeepable(fact: Fact) -> bytes:
    """The fact as JSON bytes. Raises InvalidPayload for a NUL character, or a text that passes for a sealed one."""
    body = fact.__pydantic_serializer__.to_json(fact)
    if b"\\u0000" in body:  # a hint only: the text `\u0000` looks the same here
        refuse_nul(fact.model_dump(), f"the data of {fact.name}")
    if HINT in body and says_mark(fact.model_dump(exclude=set(fact.sealed_only))):
        raise InvalidPayload(
            f"a text in the data of {fact.name} begins with {MARK}, as only what the ledger has sealed may: put "
            "something before it",
            errors=[],
        )
    return body


def event_id(retry: uuid.UUID | None, part: int | str = 0) -> str:
    """The id of one event of a request: of the request's key when there is one, else random."""
    return new_event_id() if retry is None else str(uuid.uuid5(retry, str(part)))


def mismatch() -> IdempotencyMismatch:
    """The key belongs to another request."""
    return IdempotencyMismatch(
        "this Idempotency-Key was sent before with another request: nothing was changed; use a key of its own for each "
        "request, and the same one only to repeat it"
    )


def lifted(lineage: Lineage, *givers: Source | Case | None, **given: str | None) -> Lineage:
    """Lineage with trace and message filled in from what was sent, where the door was told none.

    `given` are the top-level fields `trace_id` and `message_id`; they win over those of `givers`.
    """
    trace_id = lineage.trace_id or _sent("trace_id", givers, given)
    message_id = lineage.message_id or _sent("message_id", givers, given)
    if trace_id == lineage.trace_id and message_id == lineage.message_id:
        return lineage
    return Lineage(trace_id, message_id, lineage.causation_id, lineage.correlation_id, lineage.traceparent)


def _sent(name: str, givers: Sequence[Source | Case | None], given: Mapping[str, str | None]) -> str | None:
    if given and (value := given.get(name)) and len(value) <= MAX_REFERENCE:  # a longer one stays where it was sent
        return value
    for giver in givers:
        if giver is not None and (told := getattr(giver, name)) and len(told) <= MAX_REFERENCE:
            return str(told)
    return None
