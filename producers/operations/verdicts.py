"""How are thousands of verdicts of one request kept? The batch_update of source 001 (mission K3, K10).

Each is judged on its own: what does not fit is refused, the rest is kept. While the broker keeps a thousand, the next
thousand are judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson
from pydantic import TypeAdapter, ValidationError

from ledger.errors import LedgerError
from ledger.event import JsonObject, Lineage, NewEvent, new_event_id
from ledger.events.knowledge import KnowledgeRated
from ledger.scopes import Caller
from producers.operations.desk import Desk, first_entity, reach_head
from producers.operations.feedback import error_body
from producers.operations.knowledge import unknown
from producers.publish import event_id, lifted, may_be_unkeepable, publish_judged, refuse_unkeepable
from producers.requests import CaseBody, FeedbackBody, FeedbackRequest, parse
from projections.knowledge import ask
from projections.lineage import ask as events

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

    Raises PayloadTooLarge, BrokerUnavailable, ViewBehind; then some may be kept, and sending the same again with the
    same key is safe.
    """
    judging = _Judging(desk, caller, lineage, retry)
    documents, updated, position = request.feedback_list, 0, 0
    keeping: deque[asyncio.Task[int]] = deque()
    try:
        for start in range(0, len(documents), KEPT_AT_ONCE):
            batch = await judging.judged(documents[start : start + KEPT_AT_ONCE], start)
            if len(keeping) == UNDER_WAY:
                position = max(position, await keeping.popleft())
            keeping.append(asyncio.create_task(_keep(desk, batch, look_first=retry is not None)))
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
    retry: uuid.UUID | None
    batch_id: str = field(default_factory=new_event_id)
    """What the ids of the events begin with where there is no key: one made at random for each took 2.5 µs."""
    refused: list[JsonObject] = field(default_factory=list)
    _sees: dict[str, bool] = field(default_factory=dict)

    async def judged(self, documents: Sequence[JsonObject], first: int) -> list[NewEvent]:
        """The events of what fits of some verdicts, numbered from `first`."""
        batch: list[tuple[int, NewEvent]] = []
        actor, org = first_entity(self.caller), self.desk.org
        for start in range(0, len(documents), READ_AT_ONCE):
            some = documents[start : start + READ_AT_ONCE]
            for index, said in enumerate(_verdicts(some, first + start), first + start):
                if isinstance(said, LedgerError):
                    self._refuse(index, documents[index - first].get("knowledge_id"), said)
                    continue
                item_id, fact = said
                own_id = f"{self.batch_id}-{index}" if self.retry is None else event_id(self.retry, index)
                batch.append((index, NewEvent(fact, item_id, actor, org, lifted(self.lineage, fact.case), id=own_id)))
            await asyncio.sleep(0)
        sees = await self._look({event.entity_id for _, event in batch})
        for index, event in batch:
            if not sees[event.entity_id]:
                self._refuse(index, event.entity_id, unknown(event.entity_id))
        return [event for _, event in batch if sees[event.entity_id]]

    def _refuse(self, index: int, item_id: object, error: LedgerError) -> None:
        self.refused.append({"index": index, "knowledge_id": item_id, "error": error_body(error)})

    async def _look(self, ids: set[str]) -> dict[str, bool]:
        """Which of these and all items before the caller sees; what was written a moment ago is waited for."""
        if new := ids.difference(self._sees):
            before = self.desk.view.position
            seen = await self._seen(new)
            if len(seen) < len(new) and await reach_head(self.desk) > before:
                seen = await self._seen(new)
            self._sees |= {item_id: item_id in seen for item_id in new}
        return self._sees

    async def _seen(self, ids: set[str]) -> set[str]:
        seen: set[str] = await self.desk.view.ask(ask.readable_ids, self.desk.org, self.caller, sorted(ids))
        return seen


async def _keep(desk: Desk, batch: Sequence[NewEvent], *, look_first: bool) -> int:
    """Keep what is not kept yet; the last position that any of it has, 0 of nothing."""
    before = {}
    if look_first:
        kept = await desk.view.ask(events.kept_events, desk.org, [event.id for event in batch])
        before = {name: event.position for name, event in kept.items()}
    done = await publish_judged(desk.ledger, desk.tally, [event for event in batch if event.id not in before])
    return max((*before.values(), *(kept.position for kept in done)), default=0)


def _verdicts(documents: Sequence[JsonObject], first: int) -> list[tuple[str, KnowledgeRated] | LedgerError]:
    """What each of some verdicts, numbered from `first`, says of which item, or why it is refused.

    All are read at once, which takes half the time; where one of them does not fit, one by one.
    """
    with contextlib.suppress(ValidationError):
        said = _FEEDBACK.validate_python(documents)
        if not may_be_unkeepable(orjson.dumps(documents)):
            return [(each.knowledge_id, _rated(each)) for each in said]
    return [_verdict(document, number) for number, document in enumerate(documents, first)]


def _verdict(document: JsonObject, number: int) -> tuple[str, KnowledgeRated] | LedgerError:
    try:
        said = parse(FeedbackBody, document, f"feedback_list[{number}]")
        fact = _rated(said)
        refuse_unkeepable(fact)
    except LedgerError as error:
        return error
    return said.knowledge_id, fact


def _rated(said: FeedbackBody) -> KnowledgeRated:
    return KnowledgeRated(verdict="helpful" if said.is_helpful else "harmful", case=said.case or CaseBody())
