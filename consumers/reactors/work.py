"""Shared work of the reactors: process state, model calls, and idempotent events for each step.

Every event of a process is published in the requester's name, with an id derived from the process and the step: a step
that is repeated, after a crash or on another node, is stored once.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from consumers.model import Answer, ChatModel, Prompt
from consumers.structured import A
from kledger.contract.errors import BrokerUnavailable, Interrupted, LedgerError, SubjectForgotten, VersionConflict
from kledger.contract.memory import LIFETIMES
from kledger.contract.words import ModelTask
from ledger.event import Appended, Fact, Lineage, NewEvent
from ledger.events.model import ModelUsed
from ledger.events.process import CallStarted
from ledger.events.usage import Usage
from ledger.named_ids import named_id
from ledger.privacy.personal import NOBODY
from ledger.sessions.store import SessionStore
from ledger.stream import Ledger
from projections.engine.view import View
from projections.search.ask import Searcher
from projections.views.processes import ask
from projections.views.processes.ask import Process

# Namespace of the reactors' event ids; with another one, every repeated step would be a new event.
NAMESPACE = uuid.UUID("0c6c3b0e-7d0b-5b0e-9b67-0c1f5a1b6d11")
PAUSE = 1.0
"""Seconds between tries to append."""
PATIENCE = 600.0
REASON = 500
"""Most characters of an error's message in an event."""

Append = Callable[[Sequence[NewEvent]], Awaitable[list[Appended]]]


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process according to the log, and the position of its last own event."""

    process: Process
    last: int


@dataclass(frozen=True, slots=True)
class Work:
    """The dependencies of one node's reactors. `append` seals and appends events; `ledger` is for positions."""

    org: str
    view: View
    searcher: Searcher
    ledger: Ledger
    append: Append
    model: ChatModel
    sessions: SessionStore | None = None
    lifetimes: Mapping[str, int] = field(default_factory=lambda: LIFETIMES)
    """Seconds that short memories live, by kind."""

    async def state(self, kind: str, process_id: str) -> ProcessState | None:
        """The current state of a process; None when its request was refused. Raises BrokerUnavailable, ViewBehind."""
        last = await self.ledger.last_position_of(self.org, kind, process_id)
        await self.view.wait_for(last)
        process = await self.view.ask(ask.process, self.org, kind, process_id)
        return None if process is None else ProcessState(process, last)

    async def under_way(
        self, kind: str, process_id: str, stages: Collection[str] = ("requested", "started")
    ) -> ProcessState | None:
        """The state of a process that is at one of these stages; None where it is not, and there is nothing to do."""
        state = await self.state(kind, process_id)
        return state if state is not None and state.process.stage in stages else None

    async def call_begins(self, state: ProcessState, fact: CallStarted) -> None:
        """Record that a model is about to be called, which excludes other workers on the process.

        Raises Interrupted when it was called before, no answer was recorded, and the endpoint might bill it again;
        VersionConflict when another node is working on it.
        """
        if state.process.stage == "started":
            self.refuse_second_bill(state.process)
            return
        event = self.event(state.process, fact, f"started:{fact.call}", expects=state.last)
        (appended,) = await self.keep([event])
        if appended.duplicate:
            raise VersionConflict(f"another node works on {state.process.id}")

    def refuse_second_bill(self, process: Process) -> None:
        """Raise Interrupted unless a call may be repeated with its key."""
        if not self.model.idempotent:
            raise Interrupted(
                f"the node was stopped while a model worked on {process.id}, which may have been billed: ask again "
                "(or set KLEDGER_MODEL_IDEMPOTENT where the endpoint honours Idempotency-Key)",
                id=process.id,
            )

    async def ask(
        self, process: Process, task: ModelTask, prompt: Prompt, form: type[A], *, key: str, model: str
    ) -> Answer[A]:
        """Call the model. Its cost is recorded first, in the node's name, whatever becomes of the process.

        Raises what ChatModel.ask raises, and what `keep` raises.
        """
        try:
            answer = await self.model.ask(task, prompt, form, key=key, model=model)
        except LedgerError as error:
            if isinstance(usage := error.details.get("usage"), dict):
                await self._billed(process, key, Usage.model_validate(usage))
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
        trace_id: str | None = None,
        expects: int | None = None,
        actor: str | None = None,
    ) -> NewEvent:
        """The event of one step of a process, about the process itself or `entity_id`, by its owner or `actor`."""
        lineage = Lineage(
            trace_id=trace_id or process.trace_id,
            message_id=message_id or process.message_id,
            causation_id=process.requested_event,
            correlation_id=process.id,
        )
        own_id = named_id(NAMESPACE, "\n".join((self.org, process.kind, process.id, part)))
        by = actor or process.owner
        return NewEvent(fact, entity_id or process.id, by, self.org, lineage, id=own_id, expects=expects)

    async def keep(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events, which may hold a billed answer; retries for PATIENCE while the broker does not answer.

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

    async def record_failure(self, state: ProcessState, error: LedgerError, failed: Callable[..., Fact]) -> None:
        """Record that a process failed; `failed(code, reason, usage)` makes the fact."""
        billed = error.details.get("usage")
        usage = Usage.model_validate(billed) if isinstance(billed, dict) else None

        async def publish(reason: str) -> None:
            fact = failed(code=error.code, reason=reason, usage=usage)
            await self.keep([self.event(state.process, fact, "failed", expects=state.last)])

        try:
            await publish(error.message[:REASON])
        except SubjectForgotten:  # nothing more is stored about them, not even the reason
            await publish("")
