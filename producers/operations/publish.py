"""Publishing of events: the one write path of all interfaces.

Derives event ids that a retry repeats, lifts lineage from the payload, and counts what was appended.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kledger.contract.bounds import MOST_SHORT
from kledger.contract.errors import (
    IdempotencyMismatch,
    InvalidPayload,
    LedgerError,
    SubjectForgotten,
    VersionConflict,
)
from kledger.contract.knowledge import Case, Source
from kledger.contract.scopes import check_seen
from kledger.contract.seal_mark import MARK
from ledger.event import Appended, Fact, Lineage, NewEvent, new_event_id
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised
from ledger.named_ids import named_id
from ledger.privacy.sealed import HINT, USER, says_mark
from ledger.runtime import tracing
from ledger.stream import Ledger
from ledger.wire.envelope import refuse_nul
from ledger.wire.plain_data import data_of, written

# UUID namespace of ids derived from content; a change here would make every retry a new event.
NAMESPACE = uuid.UUID("6f0f3f5e-0d2a-5d0c-9a53-3f0f7c6f4a51")

CORRECTING = (KnowledgeRetired, KnowledgeRevised)
"""Events after which a statement may be held that is said again."""
SLICE = 250
"""Events per append: encoding more would block the event loop for more than a few milliseconds."""
MAX_REFERENCE = MOST_SHORT
"""Most characters that an envelope takes for each lineage field."""


def _no_timing(_what: str, _seconds: float) -> None:
    """Default of `Tally.took`: measures nothing."""


def _no_tracking(_events: Sequence[NewEvent], _appended: Sequence[Appended]) -> None:
    """Default of `Tally.wrote`: tracks nothing."""


def _nothing_seen(_position: int) -> None:
    """Default of `Tally.saw`: remembers nothing."""


@dataclass(slots=True)
class Tally:
    """Counters of one process since it started; the metrics read them."""

    appended: Counter[str] = field(default_factory=Counter)
    """Appended events by event name, without duplicates."""
    searches: int = 0
    searched_at: float = float("-inf")
    """When the last search began, in `time.monotonic` seconds."""
    bulk_rests_until: float = float("-inf")
    """Until when all bulk work pauses, by the same clock."""
    folded: int = 0
    """Events folded into the live view."""
    took: Callable[[str, float], None] = _no_timing
    """Callback with an operation (`append`, `search` or `fold`) and its duration in seconds."""
    wrote: Callable[[Sequence[NewEvent], Sequence[Appended]], None] = _no_tracking
    """Callback with the appended events and their positions."""
    saw: Callable[[int], None] = _nothing_seen
    """Callback with a position of which a reader has seen something before the view has it."""
    corrected: int = 0
    """Position of the last event by which a person retired or revised an item through this process."""
    recalls_lost: int = 0
    """Searches that were answered while their recall could not be recorded."""


async def publish(ledger: Ledger, tally: Tally, events: Sequence[NewEvent]) -> list[Appended]:
    """Append events in order, in atomic batches of up to SLICE events.

    Raises InvalidPayload (NUL characters), PayloadTooLarge, IllegalSubject, VersionConflict,
    BrokerUnavailable; then nothing of the failed batch is appended, while earlier batches are.
    """
    appended: list[Appended] = []
    for start in range(0, len(events), SLICE):
        batch = events[start : start + SLICE]
        for event in batch:
            refuse_unkeepable(event.fact)
        appended += await publish_judged(ledger, tally, batch)
    return appended


async def publish_judged(ledger: Ledger, tally: Tally, events: Sequence[NewEvent]) -> list[Appended]:
    """Append events whose content was validated one by one, in as few and large batches as possible.

    Raises PayloadTooLarge, IllegalSubject, IllegalScope (an actor that looks like another one), VersionConflict,
    BrokerUnavailable; then earlier batches are appended.
    """
    if not events:
        return []
    for event in events:
        if not event.actor.isascii() and event.fact.by_anybody:
            check_seen("actor", event.actor)
    began = time.perf_counter()
    with tracing.span("append", kledger__type=events[0].fact.name, kledger__events=len(events)):
        appended = [await ledger.append(events[0])] if len(events) == 1 else await ledger.append_many(events)
    tally.took("append", time.perf_counter() - began)
    tally.wrote(events, appended)
    for event, kept in zip(events, appended, strict=True):
        if isinstance(event.fact, CORRECTING) and event.actor.startswith(USER):
            tally.corrected = max(tally.corrected, appended[-1].position)
        if not kept.duplicate:
            tally.appended[event.fact.name] += 1
    return appended


async def publish_each(ledger: Ledger, tally: Tally, events: Sequence[NewEvent]) -> list[Appended | LedgerError]:
    """Append events that were validated and stand each for itself, and say what became of each: in one batch or, where
    somebody was forgotten to whom the text of one belongs, one by one, so that it keeps no other from the log.

    Raises PayloadTooLarge, IllegalSubject, VersionConflict (of a batch), BrokerUnavailable.
    """
    with contextlib.suppress(SubjectForgotten):
        return list(await publish_judged(ledger, tally, events))
    kept: list[Appended | LedgerError] = []
    for event in events:
        try:
            kept += await publish_judged(ledger, tally, [event])
        except (SubjectForgotten, VersionConflict) as error:
            kept.append(error)
    return kept


def may_be_unkeepable(body: bytes) -> bool:
    """False where JSON holds nothing that refuse_unkeepable refuses; True is only a hint that it may."""
    return b"\\u0000" in body or HINT in body


def refuse_unkeepable(fact: Fact, **instead: Any) -> bytes:
    """The fact as JSON bytes, with values `instead` of some of its own: with no text that those have not.

    Raises InvalidPayload for a NUL character, or a text that looks like a sealed one.
    """
    data = data_of(fact)
    data.update(instead)
    body = written(data)
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
    """The id of one event of a request: derived from the request's Idempotency-Key where there is one, else random."""
    return new_event_id() if retry is None else named_id(retry, str(part))


def mismatch() -> IdempotencyMismatch:
    """The error for an Idempotency-Key that belongs to another request."""
    return IdempotencyMismatch(
        "this Idempotency-Key was sent before with another request: nothing was changed; use a key of its own for each "
        "request, and the same one only to repeat it"
    )


def lifted(lineage: Lineage, *sources: Source | Case | None, **given: str | None) -> Lineage:
    """Lineage with trace and message filled in from the payload where the request's headers name none.

    `given` are the top-level fields `trace_id` and `message_id`; they take precedence over those of `sources`.
    """
    trace_id = lineage.trace_id or _reference("trace_id", sources, given)
    message_id = lineage.message_id or _reference("message_id", sources, given)
    if trace_id == lineage.trace_id and message_id == lineage.message_id:
        return lineage
    return Lineage(trace_id, message_id, lineage.causation_id, lineage.correlation_id, lineage.traceparent)


def _reference(name: str, sources: Sequence[Source | Case | None], given: Mapping[str, str | None]) -> str | None:
    if given and (value := given.get(name)) and len(value) <= MAX_REFERENCE:  # a longer one stays in the payload alone
        return value
    for source in sources:
        if source is not None and (reference := getattr(source, name)) and len(reference) <= MAX_REFERENCE:
            return str(reference)
    return None
