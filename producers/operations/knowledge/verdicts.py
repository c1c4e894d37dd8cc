"""Batch of verdicts: thousands of ratings in one request.

Each is judged on its own: an invalid one is refused, the others are appended. While the broker appends one batch of a
thousand, the next one is judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from pydantic import TypeAdapter, ValidationError

from kledger.contract.errors import LedgerError, NotReader
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import CaseBody, FeedbackBody, FeedbackRequest
from ledger.event import JsonObject, Lineage, NewEvent, new_event_id
from ledger.events.knowledge import KnowledgeRated
from ledger.readers import Judge
from producers.operations.desk import Desk, reach_head
from producers.operations.judged import refused_of
from producers.operations.knowledge.unknown import unknown
from producers.operations.publish import (
    event_id,
    lifted,
    may_be_unkeepable,
    mismatch,
    publish_each,
    refuse_unkeepable,
)
from producers.operations.reflection.asking import MOST_ASKED, ask_after_verdicts
from producers.operations.same_case import case_event_id
from producers.operations.stated_before import events_of_key, refuse_extra, refuse_mismatch
from producers.operations.updated import error_body
from producers.requests.reading import parse
from projections.views.knowledge.judges import judges
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

READ_AT_ONCE = 250
"""Verdicts parsed per turn of the event loop: about 3 ms."""
KEPT_AT_ONCE = 1_000
"""Verdicts per atomic batch."""
UNDER_WAY = 3
"""Batches in flight: while the broker works on one, others are sealed and encoded."""
_FEEDBACK = TypeAdapter(list[FeedbackBody])


async def rate_many(
    desk: Desk, caller: Caller, lineage: Lineage, request: FeedbackRequest, retry: uuid.UUID | None = None
) -> JsonObject:
    """Append many verdicts, in their order within each batch; what became of them (RatedMany).

    Raises IdempotencyMismatch (nothing is appended then), PayloadTooLarge, BrokerUnavailable, ViewBehind; then some
    may be appended, and sending the same again with the same key is safe.
    """
    documents, updated, position = request.feedback_list, 0, 0
    stated: deque[NewEvent] = deque(maxlen=MOST_ASKED)
    judging = _Judging(desk, caller, lineage)
    if retry is not None:
        updated, position = await judging.look_back(retry, documents)
    keeping: deque[asyncio.Task[_Kept]] = deque()
    failed: dict[str, LedgerError] = {}
    appended: dict[int, str] = {}
    seen = desk.view.position

    async def settle() -> int:
        last, errors, positions = await keeping.popleft()
        failed.update(errors)
        appended.update(positions)
        return last

    try:
        for start in range(0, len(documents), KEPT_AT_ONCE):
            batch = await judging.judged(documents[start : start + KEPT_AT_ONCE], start)
            if len(keeping) == UNDER_WAY:
                position = max(position, await settle())
            known = [event.id for event in batch if event.id in judging.named]
            keeping.append(asyncio.create_task(_append(desk, batch, known)))
            updated += len(batch)
            stated.extend(batch)
        while keeping:
            position = max(position, await settle())
        # Where others wrote meanwhile, they may have said who reads the items.
        if max(appended, default=0) > seen + sum(at > seen for at in appended):
            vain = await refused_of(desk, list(appended))
            failed |= {appended[at]: judging.closed(appended[at], error) for at, error in vain.items()}
        await ask_after_verdicts(desk, caller.agent, [event for event in stated if event.id not in failed])
    finally:
        for task in keeping:  # nothing is sent after this function has ended
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
    updated -= judging.refuse_failed(failed)
    refused = sorted(judging.refused, key=lambda row: int(row["index"]))
    return {"updated": updated, "refused": refused, "position": position or desk.view.position}


@dataclass(slots=True)
class _Judging:
    """State of one request: the items visible to the caller, and the refused verdicts."""

    desk: Desk
    caller: Caller
    lineage: Lineage
    batch_id: str = field(default_factory=new_event_id)
    """Prefix of the event ids: derived from the key, or one random id, as one for each event took 2.5 µs."""
    named: set[str] = field(default_factory=set)
    """The ids derived from a case, which may be in the log already."""
    refused: list[JsonObject] = field(default_factory=list)
    _numbers: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """The numbers and items of the verdicts that have an event of this id: one for two that are the same case."""
    _judges: dict[str, Judge | None] = field(default_factory=dict)
    _again: set[int] = field(default_factory=set)
    """The numbers of the verdicts that an earlier request with the same key appended."""
    _tail: str = ""

    async def look_back(self, retry: uuid.UUID, documents: Sequence[JsonObject]) -> tuple[int, int]:
        """The number of these verdicts that the key has appended before, and their last position, 0 without any.

        The id of a verdict holds its number and the size of the request: looked up by prefix, the key's ids tell an
        interrupted request, which is resumed, from another request with fewer or more verdicts.
        Raises IdempotencyMismatch.
        """
        self.batch_id = event_id(retry, "verdicts")
        actors = set(self.caller.reading_as())
        if self.caller.is_operator:  # rates items that only persons can read as one of these persons
            item_ids = (document.get("knowledge_id") for document in documents)
            judges_by_item = await self._judges_of({each for each in item_ids if isinstance(each, str)})
            actors |= {judge.actor for judge in judges_by_item.values() if judge is not None}
        self._tail = f"-{len(documents)}"
        # Earlier versions derived the ids from the number alone: these are looked up in the same query, for a client
        # that retries after an upgrade of the node. It costs as much as looking them up by the thousand did.
        numbered: dict[str, int] = {}
        for number in range(len(documents)):
            numbered[event_id(retry, number)] = number
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        events_by_id = await events_of_key(self.desk, actors, numbered, f"{self.batch_id}-")
        if events_by_id:
            numbered |= {self._own_id(number): number for number in range(len(documents))}
            refuse_extra(events_by_id, numbered)
            await self._compare({numbered[own_id]: event for own_id, event in events_by_id.items()}, documents)
        return len(events_by_id), max((event.position for event in events_by_id.values()), default=0)

    async def _compare(self, events_by_number: Mapping[int, StatedEvent], documents: Sequence[JsonObject]) -> None:
        """Raise IdempotencyMismatch where one of these verdicts differs from the one that was appended in its place."""
        for count, (number, event) in enumerate(events_by_number.items(), 1):
            verdict = _verdict(documents[number], number)
            if isinstance(verdict, LedgerError):
                raise mismatch()
            refuse_mismatch(_rated(verdict), verdict.knowledge_id, event)
            if count % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._again.update(events_by_number)

    async def judged(self, documents: Sequence[JsonObject], first: int) -> list[NewEvent]:
        """The events of the valid verdicts among `documents`, numbered from `first`."""
        parsed: list[tuple[int, FeedbackBody]] = []
        for start in range(0, len(documents), READ_AT_ONCE):
            part = documents[start : start + READ_AT_ONCE]
            for index, verdict in enumerate(_verdicts(part, first + start), first + start):
                if isinstance(verdict, LedgerError):
                    self._refuse(index, documents[index - first].get("knowledge_id"), verdict)
                elif index not in self._again:
                    parsed.append((index, verdict))
            await asyncio.sleep(0)
        judges_by_item = await self._judges_of({verdict.knowledge_id for _, verdict in parsed})
        batch: list[NewEvent] = []
        for number, (index, verdict) in enumerate(parsed, 1):
            judge = judges_by_item[verdict.knowledge_id]
            if judge is None:
                self._refuse(index, verdict.knowledge_id, unknown(verdict.knowledge_id))
            else:
                batch.append(self._event(index, verdict, judge))
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return batch

    def _event(self, index: int, verdict: FeedbackBody, judge: Judge) -> NewEvent:
        fact = _rated(verdict, judge.through)
        own_id = case_event_id(self.desk.org, verdict.knowledge_id, judge.actor, fact, self.lineage)
        if own_id is not None:
            self.named.add(own_id)
        else:
            own_id = self._own_id(index)
        lineage = lifted(self.lineage, fact.case)
        self._numbers.setdefault(own_id, []).append((index, verdict.knowledge_id))
        return NewEvent(fact, verdict.knowledge_id, judge.actor, self.desk.org, lineage, id=own_id)

    def _own_id(self, index: int) -> str:
        return f"{self.batch_id}-{index}{self._tail}"

    def _refuse(self, index: int, item_id: object, error: LedgerError) -> None:
        self.refused.append({"index": index, "knowledge_id": item_id, "error": error_body(error)})

    def closed(self, own_id: str, error: LedgerError) -> LedgerError:
        """The error for a verdict that the gate refused: what was closed is answered like what is not there."""
        return unknown(self._numbers[own_id][0][1]) if isinstance(error, NotReader) else error

    def refuse_failed(self, failed: Mapping[str, LedgerError]) -> int:
        """Refuse the verdicts whose events were not kept, by the ids of these; how many there are."""
        verdicts = [(*each, error) for own_id, error in failed.items() for each in self._numbers[own_id]]
        for index, item_id, error in verdicts:
            self._refuse(index, item_id, error)
        return len(verdicts)

    async def _judges_of(self, ids: set[str]) -> dict[str, Judge | None]:
        """The judge for each of these and all earlier items, None for items that the caller cannot see.

        Waits for items that were written a moment ago.
        """
        if new := ids.difference(self._judges):
            before = self.desk.view.position
            judges_by_item = await self._query(new)
            if len(judges_by_item) < len(new) and await reach_head(self.desk) > before:
                judges_by_item = await self._query(new)
            self._judges |= {item_id: judges_by_item.get(item_id) for item_id in new}
        return self._judges

    async def _query(self, ids: set[str]) -> dict[str, Judge]:
        return await self.desk.view.ask(judges, self.desk.org, self.caller, sorted(ids))


_Kept = tuple[int, dict[str, LedgerError], dict[int, str]]
"""The last position of a batch, 0 without any; the errors of the events that were not kept, by their ids; and the ids
of those that were appended, by their positions."""


async def _append(desk: Desk, batch: Sequence[NewEvent], known: Sequence[str]) -> _Kept:
    """Append the events that are not in the log yet."""
    before = {}
    if known:
        existing = await desk.view.ask(events.kept_events, desk.org, {event.actor for event in batch}, known)
        before = {name: event.position for name, event in existing.items()}
    new = [event for event in batch if event.id not in before]
    became = list(zip(new, await publish_each(desk.ledger, desk.tally, new), strict=True))
    positions = {each.position: event.id for event, each in became if not isinstance(each, LedgerError)}
    errors = {event.id: each for event, each in became if isinstance(each, LedgerError)}
    return max((*before.values(), *positions), default=0), errors, positions


def _verdicts(documents: Sequence[JsonObject], first: int) -> Sequence[FeedbackBody | LedgerError]:
    """Each verdict, numbered from `first`, or the error that refuses it.

    All are parsed at once, which takes half the time; where one of them is invalid, one by one.
    """
    with contextlib.suppress(ValidationError):
        parsed = _FEEDBACK.validate_python(documents)
        if not may_be_unkeepable(orjson.dumps(documents)):
            return parsed
    return [_verdict(document, number) for number, document in enumerate(documents, first)]


def _verdict(document: JsonObject, number: int) -> FeedbackBody | LedgerError:
    try:
        body = parse(FeedbackBody, document, f"feedback_list[{number}]")
        refuse_unkeepable(_rated(body))
    except LedgerError as error:
        return error
    return body


def _rated(verdict: FeedbackBody, through: str | None = None) -> KnowledgeRated:
    # Every value was checked by FeedbackBody, or is a scope of a stored item.
    return KnowledgeRated.model_construct(
        verdict="helpful" if verdict.is_helpful else "harmful", case=verdict.case or CaseBody(), through=through
    )
