"""What does a reactor work with, and how does it state what it did? With the view, the log and the models of its node.

Every event of a process is stated for the one who asked, and has an id of its own that follows from the process:
whoever does a step again, after a crash or on another node, states it once.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from consumers.model import Answer, ChatModel, Prompt
from consumers.model_settings import Task
from consumers.structured import A
from kledger.contract.errors import BrokerUnavailable, Interrupted, LedgerError, SubjectForgotten, VersionConflict
from ledger.event import Appended, Fact, Lineage, NewEvent
from ledger.events.model import ModelUsed
from ledger.events.process import CallStarted
from ledger.events.usage import Usage
from ledger.privacy.personal import NOBODY
from ledger.stream import Ledger
from projections.live.view import View
from projections.search.ask import Searcher
from projections.views.processes import ask
from projections.views.processes.ask import Process

# Names the ids of what reactors state; a change here would make every step that is done again a new event.
NAMESPACE = uuid.UUID("0c6c3b0e-7d0b-5b0e-9b67-0c1f5a1b6d11")
PAUSE = 1.0
"""Seconds between tries to keep what was paid for."""
PATIENCE = 600.0
REASON = 500
"""Characters of an error's message that an event keeps."""

Append = Callable[[Sequence[NewEvent]], Awaitable[list[Appended]]]


@dataclass(frozen=True, slots=True)
class Standing:
    """A process as the log has it, and the position of its last own event."""

    process: Process
    last: int


@dataclass(frozen=True, slots=True)
class Work:
    """One node's side of every reactor. `append` keeps events sealed; `ledger` is asked for positions."""

    org: str
    view: View
    searcher: Searcher
    ledger: Ledger
    append: Append
    model: ChatModel

    async def standing(self, kind: str, process_id: str) -> Standing | None:
        """How far a process is; None when its request does not count. Raises BrokerUnavailable, ViewBehind."""
        last = await self.ledger.last_position_of(self.org, kind, process_id)
        await self.view.wait_for(last)
        process = await self.view.ask(ask.process, self.org, kind, process_id)
        return None if process is None else Standing(process, last)

    async def call_begins(self, standing: Standing, fact: CallStarted) -> None:
        """State that a model is about to be asked; nobody else who works on the process may.

        Raises Interrupted when it was asked before, no answer was kept, and the endpoint could bill it again;
        VersionConflict when somebody else is at it.
        """
        if standing.process.stage == "started":
            self.refuse_second_bill(standing.process)
            return
        event = self.event(standing.process, fact, f"started:{fact.call}", expects=standing.last)
        (kept,) = await self.keep([event])
        if kept.duplicate:
            raise VersionConflict(f"another node works on {standing.process.id}")

    def refuse_second_bill(self, process: Process) -> None:
        """Raises Interrupted unless a call may be made again with its key."""
        if not self.model.idempotent:
            raise Interrupted(
                f"the node was stopped while a model worked on {process.id}, which may have been billed: ask again "
                "(or set KLEDGER_MODEL_IDEMPOTENT where the endpoint honours Idempotency-Key)",
                id=process.id,
            )

    async def ask(
        self, process: Process, task: Task, said: Prompt, form: type[A], *, key: str, model: str
    ) -> Answer[A]:
        """What the model says; what that cost is stated first, by the node itself, whatever becomes of the process.

        Raises what ChatModel.ask raises, and what keeping raises.
        """
        try:
            answer = await self.model.ask(task, said, form, key=key, model=model)
        except LedgerError as error:
            if isinstance(told := error.details.get("usage"), dict):
                await self._billed(process, key, Usage.model_validate(told))
            raise
        await self._billed(process, key, answer.usage)
        return answer

    async def _billed(self, process: Process, key: str, usage: Usage) -> None:
        fact = ModelUsed(kind=process.kind, process=process.id, asked_by=process.owner, usage=usage)
        await self.keep([self.event(process, fact, f"used:{key}", entity_id=key, actor=NOBODY)])

    def event(
        self,
        process: Process,
        fact: Fact,
        part: str,
        *,
        entity_id: str | None = None,
        message_id: str | None = None,
        expects: int | None = None,
        actor: str | None = None,
    ) -> NewEvent:
        """One step of a process, in its owner's name unless `actor` states it: about itself, or about `entity_id`."""
        lineage = Lineage(
            trace_id=process.trace_id,
            message_id=message_id or process.message_id,
            causation_id=process.requested_event,
            correlation_id=process.id,
        )
        own_id = str(uuid.uuid5(NAMESPACE, "\n".join((self.org, process.kind, process.id, part))))
        by = actor or process.owner
        return NewEvent(fact, entity_id or process.id, by, self.org, lineage, id=own_id, expects=expects)

    async def keep(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append what may have been paid for: while the broker does not answer, it is tried again.

        Raises VersionConflict, InvalidPayload, PayloadTooLarge, SubjectForgotten, and BrokerUnavailable in the end.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while True:
            try:
                return await self.append(events)
            except BrokerUnavailable:
                if loop.time() > until:
                    raise
            await asyncio.sleep(PAUSE)

    async def state_failure(self, standing: Standing, error: LedgerError, failed: Callable[..., Fact]) -> None:
        """State that nothing came of a process: `failed(code, reason, usage)` is the fact that says so."""
        told = error.details.get("usage")
        usage = Usage.model_validate(told) if isinstance(told, dict) else None

        async def state(reason: str) -> None:
            fact = failed(code=error.code, reason=reason, usage=usage)
            await self.keep([self.event(standing.process, fact, "failed", expects=standing.last)])

        try:
            await state(error.message[:REASON])
        except SubjectForgotten:  # nothing more is said of them, not even why
            await state("")
