"""Reactor of evolutions: a model rewrites an item, and its proposal is published, and applied if requested.

The proposal and its application are one atomic batch, so that a crash leaves both or neither. When the item changed in
the meantime, or its owner requested a dry run, the proposal is not applied.
"""

from __future__ import annotations

from consumers.model import Answer
from consumers.prompting import element, prompt
from consumers.reactors.subscription import Request
from consumers.reactors.work import ProcessState, Work
from consumers.structured import Structured
from kledger.contract.bounds import is_blank
from kledger.contract.errors import Erased, IllegalState, LedgerError, ModelFailed, NotOwner, VersionConflict
from ledger.event import JsonObject, NewEvent, utc_now
from ledger.events.evolution import EvolutionFailed, EvolutionProposed, EvolutionStarted
from ledger.events.knowledge import KnowledgeEvolved
from projections.views.feedback.ask import cases
from projections.views.knowledge.lives import over_among
from projections.views.knowledge.versions import Version, version_of

ATTEMPTS = 6
"""Tries to apply a proposal while others write to the item."""
MOST_CASES = 20
_TAGS = "item|feedback|cases"


class Rewritten(Structured):
    """What the model makes of an item."""

    content: str
    task: str | None
    reason: str

    @property
    def stated_task(self) -> str | None:
        """The task, where it says one."""
        return None if self.task is None or is_blank(self.task) else self.task


class Evolving:
    """The reactor of `evolution.requested`; see consumers.reactors.subscription.Reactor."""

    name = "evolve"
    kind = "evolution"
    stages: tuple[str, ...] = ("requested",)

    def __init__(self, work: Work) -> None:
        self._work = work
        self.at_once = work.model.settings.concurrency

    async def react(self, request: Request) -> None:
        """Call the model, and publish its proposal. Raises what the work raises."""
        state = await self._work.under_way(self.kind, request.id)
        if state is None:
            return
        requested = state.process.requested
        item = await self._item(requested, state.process.owner)
        name = self._work.model.named("evolve", requested.get("model"))
        cases_of_item = await self._cases(requested["item_id"])
        evolve_prompt = prompt("evolve", _material(item, requested["feedback"], cases_of_item))
        call = f"{request.id}:evolve"
        await self._work.call_begins(state, EvolutionStarted(call=call, model=name))
        answer = await self._work.ask(state.process, "evolve", evolve_prompt, Rewritten, key=call, model=name)
        try:
            await self._propose(request, answer)
        except LedgerError as error:
            error.details.setdefault("usage", answer.usage.model_dump())
            raise

    async def fail(self, request: Request, error: LedgerError) -> None:
        state = await self._work.under_way(self.kind, request.id, ("requested", "started", "proposed"))
        if state is None:
            return
        item_id = state.process.requested["item_id"]
        await self._work.record_failure(state, error, lambda **fields: EvolutionFailed(item_id=item_id, **fields))

    async def _propose(self, request: Request, answer: Answer[Rewritten]) -> None:
        """Publish the proposal, and apply it if that was requested and the item has not changed."""
        for _ in range(ATTEMPTS):
            state = await self._work.state(self.kind, request.id)
            if state is None or state.process.stage != "started":
                raise VersionConflict(f"somebody else went on with {request.id}")
            events = [self._proposed(state, answer)]
            if state.process.requested["apply"]:
                events += await self._applied(state, answer.value)
            try:
                await self._work.keep(events)
            except VersionConflict:
                continue  # such as a rating in between: check again whether the item has changed
            return
        raise VersionConflict(f"others keep writing to the item of {request.id}")

    def _proposed(self, state: ProcessState, answer: Answer[Rewritten]) -> NewEvent:
        rewritten = answer.value
        if is_blank(rewritten.content):
            raise ModelFailed("the model rewrote the item as nothing: ask again, with other feedback")
        fact = EvolutionProposed(
            item_id=state.process.requested["item_id"],
            content=rewritten.content,
            task=rewritten.stated_task,
            reason=rewritten.reason or None,
            usage=answer.usage,
        )
        return self._work.event(state.process, fact, "proposed", expects=state.last)

    async def _applied(self, state: ProcessState, rewritten: Rewritten) -> list[NewEvent]:
        """The event that applies a proposal; none when the item has changed since its base version, or is over."""
        process, requested = state.process, state.process.requested
        last = await self._work.ledger.last_position_of(self._work.org, "knowledge", requested["item_id"])
        await self._work.view.wait_for(last)
        item = await self._item(requested, process.owner)
        if item.current != requested["base_version"] or item.status != "active":
            return []
        if await self._work.view.ask(over_among, self._work.org, [requested["item_id"]], utc_now()):
            return []  # a change would begin its life anew, before the node has stated its end
        fact = KnowledgeEvolved(
            evolution=process.id, base_version=item.version, content=rewritten.content, task=rewritten.stated_task
        )
        return [self._work.event(process, fact, "evolved", entity_id=requested["item_id"], expects=last)]

    async def _item(self, requested: JsonObject, requester: str) -> Version:
        item_id = requested["item_id"]
        item = await self._work.view.ask(version_of, self._work.org, item_id, requested["base_version"])
        if item is None or (requester != item.owner and requester not in (item.writers or ())):
            # Interfaces check this too, but nobody checks what a publisher sends over NATS. The reason discloses
            # nothing of an item that may be hidden: not its existence, its owner or its status.
            raise NotOwner(
                f"{requester} may not have version {requested['base_version']} of {item_id} rewritten: it is not "
                "there, or another's",
                id=item_id,
            )
        if item.erased:
            raise Erased(f"what {item_id} said was erased with the person it belonged to", id=item_id)
        if item.status != "active":
            raise IllegalState(f"{item_id} is {item.status}: only what is active is rewritten", id=item_id)
        return item

    async def _cases(self, item_id: str) -> list[JsonObject]:
        return (await self._work.view.ask(cases, self._work.org, item_id))[-MOST_CASES:]


def _material(item: Version, feedback: str, judged: list[JsonObject]) -> str:
    parts = [
        element("item", f"types: {', '.join(item.types)}\ntask: {item.task}\ncontent:\n{item.content}", _TAGS),
        element("feedback", feedback, _TAGS),
    ]
    if judged:
        parts.append(element("cases", "\n".join(map(_case, judged)), _TAGS))
    return "\n\n".join(parts)


def _case(case: JsonObject) -> str:
    fields = [f"{name}: {case[name]}" for name in ("task", "query", "outcome", "reason") if case.get(name)]
    return f"- {case['verdict']}" + (f" ({'; '.join(fields)})" if fields else "")
