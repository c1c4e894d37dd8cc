"""Reactor of slims: groups similar items, merges each group by a model or by keeping the best, and applies the result.

A slim goes through stages, each an event: requested, its groups proposed, reported; then applied, if that was requested
or the owner approved it, and reverted when the owner withdraws it. Every request resumes the slim at its current stage,
so that a killed node leaves nothing half done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import orjson

from consumers.model import Prompt
from consumers.prompting import element, prompt
from consumers.reactors.merging import Merging
from consumers.reactors.subscription import Request
from consumers.reactors.work import ProcessState, Work
from consumers.structured import Structured
from kledger.contract.bounds import is_blank
from kledger.contract.errors import LedgerError, ModelFailed, ModelRefused, NotAvailable, NotOwner, VersionConflict
from ledger.event import Fact
from ledger.events.slim import Similar, SlimApplied, SlimFailed, SlimProposed, SlimReported, SlimReverted, SlimStarted
from ledger.events.usage import Usage
from projections.similar import ask
from projections.similar.ask import Eligible
from projections.similar.groups import Found, Group, Item
from projections.similar.process import grouped, grouped_in_own_process
from projections.views.processes.ask import Process

IN_PLACE = 300
"""Most items to compare on a thread of the node, which is then faster than starting a process."""
MOST_MERGED = 200
"""Most items merged in one group; further copies are left to the next slim."""
MOST_TAGS = 128 * 1024
"""Most bytes of tags that a merge states anew: sealed for several persons they have to fit into one event."""
PROMPT_ITEMS, PROMPT_CHARACTERS = 20, 40_000
"""Limits of a group's texts in the prompt, where identical texts appear once."""
AT_ONCE = 200
_Group = tuple[int, Sequence[Eligible], Group]
"""The number of a group, its items (the survivor first), and their similarities."""
_FAILS_IN = {"requested", "reported", "approved"}


class MergedText(Structured):
    """What the model makes of a group."""

    task: str
    content: str


class Slimming:
    """The reactor of slims; see consumers.reactors.subscription.Reactor."""

    name = "slim"
    kind = "slim"
    stages: tuple[str, ...] = ("requested", "approved", "withdrawn")
    at_once = 2

    def __init__(self, work: Work) -> None:
        self._work = work
        self._merging = Merging(work)

    async def react(self, request: Request) -> None:
        """Resume the slim at its current stage. Raises what the work raises."""
        state = await self._state(request)
        if state is not None and state.process.stage == "requested":
            await self._propose(state.process)
            state = await self._state(request)
        if state is None:
            return
        process = state.process
        if process.stage == "approved" or (process.stage == "reported" and process.requested["apply"]):
            groups, skipped = await self._merging.apply(process)
            await self._end(process, SlimApplied(groups=groups, skipped=skipped))
        elif process.stage == "withdrawn":
            groups, skipped = await self._merging.revert(process)
            await self._end(process, SlimReverted(groups=groups, skipped=skipped))

    async def fail(self, request: Request, error: LedgerError) -> None:
        state = await self._state(request)
        if state is None or state.process.stage not in _FAILS_IN:
            return
        await self._work.record_failure(state, error, SlimFailed)

    async def _state(self, request: Request) -> ProcessState | None:
        return await self._work.state(self.kind, request.id)

    async def _end(self, process: Process, fact: Fact) -> None:
        """Publish a stage; idempotent."""
        last = await self._work.ledger.last_position_of(self._work.org, self.kind, process.id)
        await self._work.keep([self._work.event(process, fact, fact.verb(), expects=last)])

    async def _propose(self, process: Process) -> None:
        """Propose every group that is not proposed yet, and report.

        The items are those at the position of the request, so that a retry finds the same groups.
        """
        work, requested, began = self._work, process.requested, time.monotonic()
        if requested["owner"] != process.owner:  # interfaces check this, but not for a publisher over NATS
            raise NotOwner(f"{process.owner} may not have what {requested['owner']} owns slimmed")
        at = process.requested_position
        items = await work.view.ask(ask.eligible, work.org, requested["owner"], requested.get("scopes"), at)
        result = await _grouped(items, requested["threshold"])
        proposed = {each.group for each in await work.view.ask(ask.proposed_groups, work.org, process.id)}
        by_id = {item.id: item for item in items}
        todo = [
            (number, [by_id[name] for name in (group.survivor, *(member.id for member in group.merged))], group)
            for number, group in enumerate(map(_limited, result.groups))
            if number not in proposed
        ]
        model = self._model(requested.get("model"))
        if model is None:
            for first in range(0, len(todo), AT_ONCE):
                part = todo[first : first + AT_ONCE]
                await self._keep_proposed(process, [_proposal(number, items, group) for number, items, group in part])
        else:
            await self._ask_all(process, model, todo)
        report = SlimReported(
            candidates=result.candidates,
            groups=len(result.groups),
            items=len(items),
            seconds=round(time.monotonic() - began, 3),
        )
        await self._end(process, report)

    async def _ask_all(self, process: Process, model: str, todo: Sequence[_Group]) -> None:
        """Have the model merge each group. All billed answers are recorded before the first failure is raised."""
        begun = await self._work.view.ask(ask.calls_begun, self._work.org, process.id)
        if any(_call(process, number) in begun for number, _, _ in todo):
            self._work.refuse_second_bill(process)
        limit = asyncio.Semaphore(self._work.model.settings.concurrency)
        failed = asyncio.Event()

        async def one(number: int, items: Sequence[Eligible], group: Group) -> None:
            async with limit:  # so that a waiting call is not recorded as begun
                if failed.is_set():
                    return
                try:
                    await self._ask(process, model, _call(process, number) in begun, number, items, group)
                except BaseException:
                    failed.set()
                    raise

        for outcome in await asyncio.gather(*(one(*group) for group in todo), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _model(self, requested: str | None) -> str | None:
        """The model that merges; None to keep the best of each group."""
        try:
            return None if requested is None else self._work.model.named("slim", requested)
        except NotAvailable:
            return None

    async def _ask(
        self, process: Process, model: str, begun: bool, number: int, items: Sequence[Eligible], group: Group
    ) -> None:
        """Have the model merge one group, and propose the result; without a usable answer the best item is kept."""
        if len({(item.task, item.content) for item in items}) == 1:
            await self._keep_proposed(process, [_proposal(number, items, group)])
            return
        call = _call(process, number)
        if not begun:
            event = self._work.event(process, SlimStarted(call=call, model=model), f"started:{call}")
            (kept,) = await self._work.keep([event])
            if kept.duplicate:
                raise VersionConflict(f"another node works on {process.id}")
        text: MergedText | None = None
        try:
            answer = await self._work.ask(process, "slim", _prompt(items), MergedText, key=call, model=model)
            text, usage = answer.value, answer.usage
        except (ModelRefused, ModelFailed) as error:
            if not isinstance(billed := error.details.get("usage"), dict):
                raise  # nothing was billed: the endpoint is unreachable
            usage = Usage.model_validate(billed)
        await self._keep_proposed(process, [_proposal(number, items, group, text, usage)])

    async def _keep_proposed(self, process: Process, facts: Sequence[SlimProposed]) -> None:
        await self._work.keep([self._work.event(process, fact, f"proposed:{fact.group}") for fact in facts])


async def _grouped(items: Sequence[Eligible], threshold: float) -> Found:
    """The groups among the items; all items of a group have the same readers, and live alike."""
    alike: dict[str, list[Item]] = {}
    for each in items:
        text = f"{each.task}\n{each.content}"
        item = Item(each.id, text, tuple(each.types), each.quality, each.confidence, each.created_position)
        alike.setdefault(each.among, []).append(item)
    bodies = [body for body in alike.values() if len(body) > 1]
    if sum(map(len, bodies)) > IN_PLACE:
        return await grouped_in_own_process(bodies, threshold)
    return await asyncio.to_thread(grouped, bodies, threshold)


def _call(process: Process, number: int) -> str:
    return f"{process.id}:{number}"


def _limited(group: Group) -> Group:
    return Group(group.survivor, group.merged[:MOST_MERGED])


def _proposal(
    number: int,
    items: Sequence[Eligible],
    group: Group,
    merged_text: MergedText | None = None,
    usage: Usage | None = None,
) -> SlimProposed:
    """The proposal for one group: the survivor's text unless a model wrote one, and the types and tags of all items.

    Types or tags that together are more than an item may have are left: then the survivor keeps its own.
    """
    survivor, *others = items
    types = list(dict.fromkeys(name for item in items for name in item.types))
    tags = {name: value for item in reversed(items) for name, value in item.tags.items()}
    text = merged_text if merged_text is not None and not is_blank(merged_text.content) else None
    versions = {item.id: item.version for item in others}
    return SlimProposed(
        group=number,
        survivor=survivor.id,
        survivor_version=survivor.version,
        merged=[Similar(id=each.id, version=versions[each.id], similarity=each.similarity) for each in group.merged],
        types=types if types != survivor.types and len(types) <= 16 else None,
        task=text.task if text is not None and not is_blank(text.task) else None,
        content=text.content if text is not None else None,
        tags=tags if tags != survivor.tags and len(orjson.dumps(tags)) <= MOST_TAGS else None,
        usage=usage,
    )


def _prompt(items: Sequence[Eligible]) -> Prompt:
    texts = list(dict.fromkeys(f"task: {item.task}\ncontent:\n{item.content}" for item in items))
    parts: list[str] = []
    length = 0
    for text in texts[:PROMPT_ITEMS]:
        length += len(text)
        if parts and length > PROMPT_CHARACTERS:
            break
        parts.append(element("item", text))
    return prompt("slim", "\n\n".join(parts))
