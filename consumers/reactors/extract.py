"""Which knowledge is in what was said or done (mission K6)? A model finds it; what is known already is told apart.

Everything that comes of one extraction is one atomic batch of events whose ids follow from it: a crash leaves all or
nothing, and doing it again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from consumers.model import Answer
from consumers.prompting import extraction_prompt, prompt
from consumers.reactors.extracted import Finding, Findings, Judgement, events_of, knowledge_in, material, pairs
from consumers.reactors.similar import similar_to
from consumers.reactors.subscription import Request
from consumers.reactors.work import Standing, Work
from kledger.contract.errors import Erased, LedgerError, NotOwner, VersionConflict
from ledger.event import JsonObject
from ledger.events.extraction import ExtractionFailed, ExtractionStarted
from ledger.events.usage import Usage, together
from projections.fold_kit.erased import NOTHING, places_of, within
from projections.views.processes.ask import Process

CANDIDATES = 3
"""Known items that each finding is compared with."""


@dataclass(frozen=True, slots=True)
class _Judged:
    known: dict[int, list[JsonObject]]
    judgement: Judgement
    usage: Usage


class Extracting:
    """The reactor of `extraction.requested`; see consumers.reactors.subscription.Reactor.

    One at a time on a node: what an extraction has found is known to the next one.
    """

    name = "extract"
    kind = "extraction"
    hears: tuple[str, ...] = ("requested",)
    at_once = 1

    def __init__(self, work: Work) -> None:
        self._work = work

    async def react(self, request: Request) -> None:
        """Ask the model what is there, compare it with what is known, and keep it."""
        standing = await self._work.standing(self.kind, request.id)
        if standing is None or standing.process.stage not in ("requested", "started"):
            return
        asked = standing.process.requested
        if asked["owner"] != standing.process.owner:  # a door has asked this already, a publisher over NATS nobody
            raise NotOwner(f"{standing.process.owner} may not have knowledge found for {asked['owner']}")
        name = self._work.model.named("extract", asked.get("model"))
        said = extraction_prompt(material(asked, await self._messages(standing.process)))
        call = f"{request.id}:extract"
        await self._work.call_begins(standing, ExtractionStarted(call=call, model=name))
        answer: Answer[Findings] = await self._work.ask(
            standing.process, "extract", said, Findings, key=call, model=name
        )
        usage = answer.usage
        try:
            found = knowledge_in(answer.said, asked)
            judged = await self._judged(request, standing.process, found, name, usage)
            usage = judged.usage
            await self._keep(request, found, judged)
        except LedgerError as error:
            error.details["usage"] = _whole(usage, error).model_dump()
            raise

    async def fail(self, request: Request, error: LedgerError) -> None:
        """See Reactor.fail."""
        standing = await self._work.standing(self.kind, request.id)
        if standing is None or standing.process.stage not in ("requested", "started"):
            return
        await self._work.state_failure(standing, error, lambda **told: ExtractionFailed(**told))

    async def _judged(
        self, request: Request, process: Process, found: list[Finding], name: str, usage: Usage
    ) -> _Judged:
        """What the model says of each finding beside the known items that are most like it."""
        nothing = _Judged({}, Judgement(verdicts=[]), usage)
        if not found:
            return nothing
        asked, call = process.requested, f"{request.id}:judge"
        position = await self._judging_begins(request, call, name)
        known: dict[int, list[JsonObject]] = {}
        for number, finding in enumerate(found):
            text = f"{finding.task}\n{finding.content}"
            if items := await similar_to(self._work, text, asked["owner"], asked["scopes"], CANDIDATES, position):
                known[number] = items
        if not known:
            return nothing
        answer = await self._work.ask(
            process, "extract", prompt("judge", pairs(found, known)), Judgement, key=call, model=name
        )
        return _Judged(known, answer.said, together(usage, answer.usage))

    async def _judging_begins(self, request: Request, call: str, name: str) -> int:
        """State it, and return the position as of which the findings are compared: the same when it is done again."""
        standing = await self._current(request)
        if standing.process.said["started"]["call"] == call:
            return standing.last
        event = self._work.event(
            standing.process, ExtractionStarted(call=call, model=name), f"started:{call}", expects=standing.last
        )
        (kept,) = await self._work.keep([event])
        return kept.position

    async def _messages(self, process: Process) -> list[JsonObject]:
        """What was said. Raises Erased when it was erased with the person who said it."""
        at = process.requested_position
        if within((await self._work.view.ask(places_of, [at])).get(at, NOTHING), "messages"):
            raise Erased(f"the messages of {process.id} were erased with the person they belonged to", id=process.id)
        return [message for message in process.requested["messages"] if isinstance(message, dict)]

    async def _keep(self, request: Request, found: list[Finding], judged: _Judged) -> None:
        standing = await self._current(request)
        events = events_of(self._work, standing, found, judged.known, judged.judgement, judged.usage)
        await self._work.keep(events)

    async def _current(self, request: Request) -> Standing:
        standing = await self._work.standing(self.kind, request.id)
        if standing is None or standing.process.stage != "started":
            raise VersionConflict(f"somebody else went on with {request.id}")
        return standing


def _whole(usage: Usage, error: LedgerError) -> Usage:
    """What was paid for up to an error, with what the failed call itself cost."""
    failed = error.details.get("usage")
    return together(usage, Usage.model_validate(failed)) if isinstance(failed, dict) else usage
