"""How is an item rewritten by a model (mission K4)? Asked for, the model asked once, and what it says proposed.

The proposal and its application are one atomic batch, so that a crash leaves both or neither. When the item changed
meanwhile, or its owner asked for a dry run, the proposal stays one.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from consumers.model import Answer
from consumers.prompting import prompt
from consumers.reactors.subscription import Request
from consumers.reactors.work import Standing, Work
from kledger.contract.errors import Erased, IllegalState, LedgerError, ModelFailed, NotOwner, VersionConflict
from ledger.event import JsonObject, NewEvent
from ledger.events.evolution import EvolutionFailed, EvolutionProposed, EvolutionStarted
from ledger.events.knowledge import KnowledgeEvolved
from projections.views.feedback.ask import cases
from projections.views.knowledge.versions import Version, version_of

ATTEMPTS = 6
"""How often a proposal is applied anew when others write to the item meanwhile."""
MOST_CASES = 20


class Rewritten(BaseModel):
    """What the model makes of an item."""

    model_config = ConfigDict(extra="forbid")

    content: str
    task: str | None
    reason: str


class Evolving:
    """The reactor of `evolution.requested`; see consumers.reactors.subscription.Reactor."""

    name = "evolve"
    kind = "evolution"
    hears: tuple[str, ...] = ("requested",)

    def __init__(self, work: Work) -> None:
        self._work = work
        self.at_once = work.model.settings.concurrency

    async def react(self, request: Request) -> None:
        """Ask the model, and keep what it says. Raises what the work raises."""
        standing = await self._work.standing(self.kind, request.id)
        if standing is None or standing.process.stage not in ("requested", "started"):
            return
        asked = standing.process.requested
        item = await self._item(asked, standing.process.owner)
        name = self._work.model.named("evolve", asked.get("model"))
        said = prompt("evolve", _material(item, asked["feedback"], await self._cases(asked["item_id"])))
        call = f"{request.id}:evolve"
        await self._work.call_begins(standing, EvolutionStarted(call=call, model=name))
        answer = await self._work.ask(standing.process, "evolve", said, Rewritten, key=call, model=name)
        try:
            await self._propose(request, answer)
        except LedgerError as error:
            error.details.setdefault("usage", answer.usage.model_dump())
            raise

    async def fail(self, request: Request, error: LedgerError) -> None:
        """See Reactor.fail."""
        standing = await self._work.standing(self.kind, request.id)
        if standing is None or standing.process.stage not in ("requested", "started", "proposed"):
            return
        item_id = standing.process.requested["item_id"]
        await self._work.state_failure(standing, error, lambda **told: EvolutionFailed(item_id=item_id, **told))

    async def _propose(self, request: Request, answer: Answer[Rewritten]) -> None:
        """Keep the proposal, applied at once where that was asked for and the item is as it was."""
        for _ in range(ATTEMPTS):
            standing = await self._work.standing(self.kind, request.id)
            if standing is None or standing.process.stage != "started":
                raise VersionConflict(f"somebody else went on with {request.id}")
            events = [self._proposed(standing, answer)]
            if standing.process.requested["apply"]:
                events += await self._applied(standing, answer.said)
            try:
                await self._work.keep(events)
            except VersionConflict:
                continue  # a rating came between: whether the item is still the same is asked anew
            return
        raise VersionConflict(f"others keep writing to the item of {request.id}")

    def _proposed(self, standing: Standing, answer: Answer[Rewritten]) -> NewEvent:
        said = answer.said
        if not said.content.strip():
            raise ModelFailed("the model rewrote the item as nothing: ask again, with other feedback")
        fact = EvolutionProposed(
            item_id=standing.process.requested["item_id"],
            content=said.content,
            task=said.task or None,
            reason=said.reason or None,
            usage=answer.usage,
        )
        return self._work.event(standing.process, fact, "proposed", expects=standing.last)

    async def _applied(self, standing: Standing, said: Rewritten) -> list[NewEvent]:
        """The event that applies a proposal; none when the item is not what it was made from."""
        process, asked = standing.process, standing.process.requested
        last = await self._work.ledger.last_position_of(self._work.org, "knowledge", asked["item_id"])
        await self._work.view.wait_for(last)
        item = await self._item(asked, process.owner)
        if item.current != asked["base_version"] or item.status != "active":
            return []
        fact = KnowledgeEvolved(
            evolution=process.id, base_version=item.version, content=said.content, task=said.task or None
        )
        return [self._work.event(process, fact, "evolved", entity_id=asked["item_id"], expects=last)]

    async def _item(self, asked: JsonObject, asker: str) -> Version:
        item_id = asked["item_id"]
        item = await self._work.view.ask(version_of, self._work.org, item_id, asked["base_version"])
        if item is None or (asker != item.owner and asker not in (item.writers or ())):
            # An interface has asked this already, a publisher over NATS was asked by nobody; the reason tells the
            # asker nothing of an item that may be hidden: not whether it is there, whose it is, or how it stands.
            raise NotOwner(
                f"{asker} may not have version {asked['base_version']} of {item_id} rewritten: it is not there, or "
                "another's",
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
    told = [
        f"<item>\ntypes: {', '.join(item.types)}\ntask: {item.task}\ncontent:\n{item.content}\n</item>",
        f"<feedback>\n{feedback}\n</feedback>",
    ]
    if judged:
        told.append("<cases>\n" + "\n".join(map(_case, judged)) + "\n</cases>")
    return "\n\n".join(told)


def _case(case: JsonObject) -> str:
    said = [f"{name}: {case[name]}" for name in ("task", "query", "outcome", "reason") if case.get(name)]
    return f"- {case['verdict']}" + (f" ({'; '.join(said)})" if said else "")
