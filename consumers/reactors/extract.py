"""Reactor of extractions: a model finds knowledge in messages, which is compared with known items and published.

All results of one extraction are one atomic batch of events with ids derived from it: a crash leaves all or nothing,
and a repetition changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from consumers.model import Answer
from consumers.prompting import extraction_prompt, prompt
from consumers.reactors.extracted import events_of, finding_saved
from consumers.reactors.findings import (
    OF_A_PERSON,
    Finding,
    Findings,
    Judgement,
    material,
    pairs,
    usable_findings,
)
from consumers.reactors.said import Said, with_verdicts, words_of
from consumers.reactors.similar import similar_to
from consumers.reactors.subscription import Request
from consumers.reactors.work import ProcessState, Work
from kledger.contract.errors import Erased, LedgerError, NotOwner, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.events.extraction import ExtractionFailed, ExtractionStarted
from ledger.events.usage import Usage, together
from projections.fold_kit.erased import NOTHING, places_of, within
from projections.similar.ask import standings
from projections.similar.tombstones import SaidAgain, Stated, said_again
from projections.views.processes.ask import Process
from projections.views.times import rfc3339

_ATTEMPTS = 6
"""Tries to keep what was found while others write to what it revises."""
_WAITS = 30.0
"""Seconds for the view to have what a person said a moment ago."""
CANDIDATES = 3
"""Known items to compare each finding with."""


@dataclass(frozen=True, slots=True)
class _Judged:
    known: dict[int, list[JsonObject]]
    judgement: Judgement
    usage: Usage


class Extracting:
    """The reactor of `extraction.requested`; see consumers.reactors.subscription.Reactor.

    One at a time on a node, so that the findings of one extraction are known to the next.
    """

    name = "extract"
    kind = "extraction"
    stages: tuple[str, ...] = ("requested",)
    at_once = 1

    def __init__(self, work: Work) -> None:
        self._work = work

    async def react(self, request: Request) -> None:
        """Have a model find knowledge, compare it with known items, and publish the outcome."""
        state = await self._work.under_way(self.kind, request.id)
        if state is None:
            return
        requested = state.process.requested
        if requested["owner"] != state.process.owner:  # interfaces check this, but not for a publisher over NATS
            raise NotOwner(f"{state.process.owner} may not have knowledge found for {requested['owner']}")
        name = self._work.model.named("extract", requested.get("model"))
        said = await self._said(state.process)
        find_prompt = extraction_prompt(material(requested, said.messages, rfc3339(state.process.requested_us)))
        call = f"{request.id}:extract"
        await self._work.call_begins(state, ExtractionStarted(call=call, model=name))
        answer: Answer[Findings] = await self._work.ask(
            state.process, "extract", find_prompt, Findings, key=call, model=name
        )
        usage = answer.usage
        try:
            findings = usable_findings(answer.value, requested)
            held = await self._held(state.process, findings)
            judged = await self._judged(request, state.process, findings, held, name, usage)
            usage = judged.usage
            await self._publish(request, findings, said, held, judged)
        except LedgerError as error:
            error.details["usage"] = _whole(usage, error).model_dump()
            raise

    async def fail(self, request: Request, error: LedgerError) -> None:
        state = await self._work.under_way(self.kind, request.id)
        if state is not None:
            await self._work.record_failure(state, error, ExtractionFailed)

    async def _held(self, process: Process, findings: list[Finding]) -> dict[int, SaidAgain]:
        """Those of the findings that a person had retired or corrected, as far as their owner reads that."""
        work = self._work
        head = await work.ledger.head()
        await work.view.wait_for(head.position, _WAITS)
        saves = [finding_saved(work, process, finding, {}) for finding in findings]
        stated = {
            number: Stated(each.task, each.content, each.owner, tuple(each.scopes)) for number, each in enumerate(saves)
        }
        return await work.view.ask(said_again, work.org, Caller.seeing([process.owner]), stated)

    async def _judged(
        self,
        request: Request,
        process: Process,
        findings: list[Finding],
        held: Mapping[int, SaidAgain],
        name: str,
        usage: Usage,
    ) -> _Judged:
        """The model's verdicts on the findings that are not held, each compared with the most similar known items."""
        nothing = _Judged({}, Judgement(verdicts=[]), usage)
        if len(held) == len(findings):
            return nothing
        requested, call = process.requested, f"{request.id}:judge"
        position = await self._judging_begins(request, call, name)
        known: dict[int, list[JsonObject]] = {}
        for number, finding in enumerate(findings):
            if number in held:
                continue
            text = f"{finding.task}\n{finding.content}"
            owner, scopes = requested["owner"], requested["scopes"]
            own = finding.type in OF_A_PERSON
            if items := await similar_to(self._work, text, owner, scopes, CANDIDATES, position, own=own):
                known[number] = items
        if not known:
            return nothing
        answer = await self._work.ask(
            process, "extract", prompt("judge", pairs(findings, known)), Judgement, key=call, model=name
        )
        return _Judged(known, answer.value, together(usage, answer.usage))

    async def _judging_begins(self, request: Request, call: str, name: str) -> int:
        """Record the second call; returns the position as of which findings are compared, the same on a retry."""
        state = await self._current(request)
        if state.process.said["started"]["call"] == call:
            return state.last
        event = self._work.event(
            state.process, ExtractionStarted(call=call, model=name), f"started:{call}", expects=state.last
        )
        (kept,) = await self._work.keep([event])
        return kept.position

    async def _said(self, process: Process) -> Said:
        """The messages of the request. Raises Erased when they were erased with their person, UnknownSession."""
        at = process.requested_position
        if within((await self._work.view.ask(places_of, [at])).get(at, NOTHING), "messages"):
            raise Erased(f"the messages of {process.id} were erased with the person they belonged to", id=process.id)
        named = [message for message in process.requested["messages"] if isinstance(message, dict)]
        return await with_verdicts(self._work, process, await words_of(self._work, process, named))

    async def _publish(
        self, request: Request, findings: list[Finding], said: Said, held: Mapping[int, SaidAgain], judged: _Judged
    ) -> None:
        known, judgement, usage = judged.known, judged.judgement, judged.usage
        for _ in range(_ATTEMPTS):
            state = await self._current(request)
            unchanged = await self._unchanged(state.process, known)
            events = events_of(self._work, state, findings, known, judgement, usage, held, said.traces, unchanged)
            try:
                await self._work.keep(events)
            except VersionConflict:
                continue
            return
        raise VersionConflict(f"others keep writing to what {request.id} found")

    async def _unchanged(self, process: Process, known: Mapping[int, list[JsonObject]]) -> dict[str, int]:
        """The last position of each of the owner's memories that is as the model was given it."""
        owner, work = process.requested["owner"], self._work
        given = {
            item["id"]: item
            for items in known.values()
            for item in items
            if "memory" in item and item["owner"] == owner
        }
        lasts = {name: await work.ledger.last_position_of(work.org, "knowledge", name) for name in given}
        await work.view.wait_for(max(lasts.values(), default=0))
        now = await work.view.ask(standings, work.org, list(given))
        return {
            name: lasts[name]
            for name, item in now.items()
            if (item.version, item.owner, item.status) == (given[name]["version"], owner, "active")
        }

    async def _current(self, request: Request) -> ProcessState:
        state = await self._work.state(self.kind, request.id)
        if state is None or state.process.stage != "started":
            raise VersionConflict(f"somebody else went on with {request.id}")
        return state


def _whole(usage: Usage, error: LedgerError) -> Usage:
    """The usage up to an error, including the failed call itself."""
    failed = error.details.get("usage")
    return together(usage, Usage.model_validate(failed)) if isinstance(failed, dict) else usage
