"""How are thousands of verdicts of one request kept? The batch_update of source 001 (mission K3, K10).

Each is judged on its own: what does not fit is refused, the rest is kept. While the broker keeps a thousand, the next
thousand are judged.
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

from kledger.contract.errors import LedgerError
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent, new_event_id
from ledger.events.knowledge import KnowledgeRated
from ledger.readers import Judge
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.changes import unknown
from producers.operations.knowledge.same_case import case_event_id
from producers.operations.knowledge.updated import error_body
from producers.operations.publish import (
    event_id,
    lifted,
    may_be_unkeepable,
    mismatch,
    publish_judged,
    refuse_unkeepable,
)
from producers.operations.stated_before import made, refuse_more, refuse_other
from producers.requests.knowledge import CaseBody, FeedbackBody, FeedbackRequest, parse
from projections.views.knowledge.judges import judges
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

READ_AT_ONCE = 250
"""Verdicts read before others get their turn: about 3 ms."""
KEPT_AT_ONCE = 1_000
"""Verdicts kept in one atomic batch."""
UNDER_WAY = 3
"""Batches on their way to the broker at once: while it works on one, others are sealed and written down."""
_FEEDBACK = TypeAdapter(list[FeedbackBody])


@dataclass(frozen=True, slots=True)
class Rated:
    """What became of a batch of verdicts. `refused` has `index`, `knowledge_id`, `error`."""

    updated: int
    refused: list[JsonObject]
    position: int


async def rate_many(
    desk: Desk, caller: Caller, lineage: Lineage, request: FeedbackRequest, retry: uuid.UUID | None = None
) -> Rated:
    """Keep many verdicts, in their order within each thousand.

    Raises IdempotencyMismatch (nothing is kept then), PayloadTooLarge, BrokerUnavailable, ViewBehind; then some may be
    kept, and sending the same again with the same key is safe.
    """
    documents, updated, position = request.feedback_list, 0, 0
    judging = _Judging(desk, caller, lineage)
    if retry is not None:
        updated, position = await judging.look_back(retry, documents)
    keeping: deque[asyncio.Task[int]] = deque()
    try:
        for start in range(0, len(documents), KEPT_AT_ONCE):
            batch = await judging.judged(documents[start : start + KEPT_AT_ONCE], start)
            if len(keeping) == UNDER_WAY:
                position = max(position, await keeping.popleft())
            known = [event.id for event in batch if event.id in judging.named]
            keeping.append(asyncio.create_task(_keep(desk, batch, known)))
            updated += len(batch)
        while keeping:
            position = max(position, await keeping.popleft())
    finally:
        for task in keeping:  # nothing more is sent once this has ended
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)
    return Rated(updated, sorted(judging.refused, key=lambda told: int(told["index"])), position or desk.view.position)


@dataclass(slots=True)
class _Judging:
    """What was found so far: the items that the caller sees, and what is refused."""

    desk: Desk
    caller: Caller
    lineage: Lineage
    batch_id: str = field(default_factory=new_event_id)
    """What the ids of the events begin with: made of the key, or at random once, as one for each took 2.5 µs."""
    named: set[str] = field(default_factory=set)
    """The ids that follow from a case, which may be kept already."""
    refused: list[JsonObject] = field(default_factory=list)
    _judges: dict[str, Judge | None] = field(default_factory=dict)
    _again: set[int] = field(default_factory=set)
    """The numbers of the verdicts that an earlier try with the same key kept."""
    _tail: str = ""

    async def look_back(self, retry: uuid.UUID, documents: Sequence[JsonObject]) -> tuple[int, int]:
        """How many of these verdicts the key has kept before, and the last position of those, 0 of none.

        The id of a verdict says its number, and how many there are: the key's ids, asked for by their beginning, tell a
        request that was interrupted, of which the rest is kept now, from another one that has a verdict less or more.
        Raises IdempotencyMismatch.
        """
        self.batch_id = event_id(retry, "verdicts")
        actors = set(self.caller.reading_as())
        if self.caller.is_operator:  # judges what persons alone read as one of them
            named = (document.get("knowledge_id") for document in documents)
            found = await self._look({each for each in named if isinstance(each, str)})
            actors |= {judge.actor for judge in found.values() if judge is not None}
        self._tail = f"-{len(documents)}"
        # Their numbers alone made the ids before: these are asked for as well, in the one question, for a client whose
        # node is stopped to be upgraded. It costs what asking for them a thousand at a time did.
        numbered: dict[str, int] = {}
        for number in range(len(documents)):
            numbered[event_id(retry, number)] = number
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        kept = await made(self.desk, actors, numbered, f"{self.batch_id}-")
        if kept:
            numbered |= {self._own_id(number): number for number in range(len(documents))}
            refuse_more(kept, numbered)
            await self._compare({numbered[own_id]: event for own_id, event in kept.items()}, documents)
        return len(kept), max((event.position for event in kept.values()), default=0)

    async def _compare(self, kept: Mapping[int, StatedEvent], documents: Sequence[JsonObject]) -> None:
        """Raise IdempotencyMismatch where one of these verdicts is not the one that was kept in its place."""
        for count, (number, event) in enumerate(kept.items(), 1):
            said = _verdict(documents[number], number)
            if isinstance(said, LedgerError):
                raise mismatch()
            refuse_other(_rated(said), said.knowledge_id, event)
            if count % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        self._again.update(kept)

    async def judged(self, documents: Sequence[JsonObject], first: int) -> list[NewEvent]:
        """The events of what fits of some verdicts, numbered from `first`."""
        read: list[tuple[int, FeedbackBody]] = []
        for start in range(0, len(documents), READ_AT_ONCE):
            some = documents[start : start + READ_AT_ONCE]
            for index, said in enumerate(_verdicts(some, first + start), first + start):
                if isinstance(said, LedgerError):
                    self._refuse(index, documents[index - first].get("knowledge_id"), said)
                elif index not in self._again:
                    read.append((index, said))
            await asyncio.sleep(0)
        found = await self._look({said.knowledge_id for _, said in read})
        batch: list[NewEvent] = []
        for number, (index, said) in enumerate(read, 1):
            judge = found[said.knowledge_id]
            if judge is None:
                self._refuse(index, said.knowledge_id, unknown(said.knowledge_id))
            else:
                batch.append(self._event(index, said, judge))
            if number % READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return batch

    def _event(self, index: int, said: FeedbackBody, judge: Judge) -> NewEvent:
        fact = _rated(said, judge.through)
        own_id = case_event_id(self.desk.org, said.knowledge_id, judge.actor, fact, self.lineage)
        if own_id is not None:
            self.named.add(own_id)
        else:
            own_id = self._own_id(index)
        lineage = lifted(self.lineage, fact.case)
        return NewEvent(fact, said.knowledge_id, judge.actor, self.desk.org, lineage, id=own_id)

    def _own_id(self, index: int) -> str:
        return f"{self.batch_id}-{index}{self._tail}"

    def _refuse(self, index: int, item_id: object, error: LedgerError) -> None:
        self.refused.append({"index": index, "knowledge_id": item_id, "error": error_body(error)})

    async def _look(self, ids: set[str]) -> dict[str, Judge | None]:
        """As whom the caller judges these and all items before, None of what it does not see.

        What was written a moment ago is waited for.
        """
        if new := ids.difference(self._judges):
            before = self.desk.view.position
            found = await self._found(new)
            if len(found) < len(new) and await reach_head(self.desk) > before:
                found = await self._found(new)
            self._judges |= {item_id: found.get(item_id) for item_id in new}
        return self._judges

    async def _found(self, ids: set[str]) -> dict[str, Judge]:
        return await self.desk.view.ask(judges, self.desk.org, self.caller, sorted(ids))


async def _keep(desk: Desk, batch: Sequence[NewEvent], known: Sequence[str]) -> int:
    """Keep what is not kept yet, as some of these cases may be; the last position of any of it, 0 of nothing."""
    before = {}
    if known:
        kept = await desk.view.ask(events.kept_events, desk.org, {event.actor for event in batch}, known)
        before = {name: event.position for name, event in kept.items()}
    done = await publish_judged(desk.ledger, desk.tally, [event for event in batch if event.id not in before])
    return max((*before.values(), *(kept.position for kept in done)), default=0)


def _verdicts(documents: Sequence[JsonObject], first: int) -> Sequence[FeedbackBody | LedgerError]:
    """Each of some verdicts, numbered from `first`, or why it is refused.

    All are read at once, which takes half the time; where one of them does not fit, one by one.
    """
    with contextlib.suppress(ValidationError):
        said = _FEEDBACK.validate_python(documents)
        if not may_be_unkeepable(orjson.dumps(documents)):
            return said
    return [_verdict(document, number) for number, document in enumerate(documents, first)]


def _verdict(document: JsonObject, number: int) -> FeedbackBody | LedgerError:
    try:
        said = parse(FeedbackBody, document, f"feedback_list[{number}]")
        refuse_unkeepable(_rated(said))
    except LedgerError as error:
        return error
    return said


def _rated(said: FeedbackBody, through: str | None = None) -> KnowledgeRated:
    # Every value was checked by FeedbackBody, or is a scope of an item that is kept.
    return KnowledgeRated.model_construct(
        verdict="helpful" if said.is_helpful else "harmful", case=said.case or CaseBody(), through=through
    )
