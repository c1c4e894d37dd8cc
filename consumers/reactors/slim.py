"""How is a body of knowledge slimmed (mission K5)? Groups are found, merged by a model or by keeping the best, applied.

A slim goes through stages, each an event: requested, its groups proposed, reported; then applied, where that was asked
for or the owner approved of it, and reverted when the owner withdraws it. Whatever hears of one drives it from the
stage that it is at, so that a node that was killed leaves nothing half done for good.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from consumers.model import Prompt
from consumers.prompting import prompt
from consumers.reactors.merging import Merging
from consumers.reactors.subscription import Request
from consumers.reactors.work import Standing, Work
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
"""Up to so many items are compared on a thread of the node, which is sooner done than a process begun."""
MOST_MERGED = 200
"""How many items one group takes up; further copies are left to the next slim."""
TOLD_ITEMS, TOLD_CHARACTERS = 20, 40_000
"""How much of a group a model is shown: what says the same word for word it sees once."""
AT_ONCE = 200
_Group = tuple[int, Sequence[Eligible], Group]
"""The number of a group, its items (the survivor first), and how similar they are."""
_FAILS_IN = {"requested", "reported", "approved"}


class MergedText(BaseModel):
    """What the model makes of a group."""

    model_config = ConfigDict(extra="forbid")

    task: str
    content: str


class Slimming:
    """The reactor of slims; see consumers.reactors.subscription.Reactor."""

    name = "slim"
    kind = "slim"
    hears: tuple[str, ...] = ("requested", "approved", "withdrawn")
    at_once = 2

    def __init__(self, work: Work) -> None:
        self._work = work
        self._merging = Merging(work)

    async def react(self, request: Request) -> None:
        """Go on from the stage that the slim is at. Raises what the work raises."""
        standing = await self._standing(request)
        if standing is not None and standing.process.stage == "requested":
            await self._propose(standing.process)
            standing = await self._standing(request)
        if standing is None:
            return
        process = standing.process
        if process.stage == "approved" or (process.stage == "reported" and process.requested["apply"]):
            groups, skipped = await self._merging.apply(process)
            await self._end(process, SlimApplied(groups=groups, skipped=skipped))
        elif process.stage == "withdrawn":
            groups, skipped = await self._merging.revert(process)
            await self._end(process, SlimReverted(groups=groups, skipped=skipped))

    async def fail(self, request: Request, error: LedgerError) -> None:
        """See Reactor.fail."""
        standing = await self._standing(request)
        if standing is None or standing.process.stage not in _FAILS_IN:
            return
        await self._work.state_failure(standing, error, SlimFailed)

    async def _standing(self, request: Request) -> Standing | None:
        return await self._work.standing(self.kind, request.id)

    async def _end(self, process: Process, fact: Fact) -> None:
        """State a stage, once."""
        last = await self._work.ledger.last_position_of(self._work.org, self.kind, process.id)
        await self._work.keep([self._work.event(process, fact, fact.verb(), expects=last)])

    async def _propose(self, process: Process) -> None:
        """Propose every group that is not proposed yet, and report.

        The items are those of the moment at which it was asked for: done again, it finds the same groups.
        """
        work, asked, began = self._work, process.requested, time.monotonic()
        if asked["owner"] != process.owner:  # a door has asked this already, a publisher over NATS nobody
            raise NotOwner(f"{process.owner} may not have what {asked['owner']} owns slimmed")
        at = process.requested_position
        items = await work.view.ask(ask.eligible, work.org, asked["owner"], asked.get("scopes"), at)
        found = await _grouped(items, asked["threshold"])
        have = {each.group for each in await work.view.ask(ask.proposed_groups, work.org, process.id)}
        by_id = {item.id: item for item in items}
        todo = [
            (number, [by_id[name] for name in (group.survivor, *(member.id for member in group.merged))], group)
            for number, group in enumerate(map(_no_larger, found.groups))
            if number not in have
        ]
        model = self._model(asked.get("model"))
        if model is None:
            for first in range(0, len(todo), AT_ONCE):
                part = todo[first : first + AT_ONCE]
                await self._keep_proposed(process, [_proposal(number, items, group) for number, items, group in part])
        else:
            await self._ask_all(process, model, todo)
        report = SlimReported(
            candidates=found.candidates,
            groups=len(found.groups),
            items=len(items),
            seconds=round(time.monotonic() - began, 3),
        )
        await self._end(process, report)

    async def _ask_all(self, process: Process, model: str, todo: Sequence[_Group]) -> None:
        """Have the model merge each group. What others were billed for is kept before the first failure is told."""
        begun = await self._work.view.ask(ask.calls_begun, self._work.org, process.id)
        if any(_call(process, number) in begun for number, _, _ in todo):
            self._work.refuse_second_bill(process)
        places = asyncio.Semaphore(self._work.model.settings.concurrency)
        failed = asyncio.Event()

        async def one(number: int, items: Sequence[Eligible], group: Group) -> None:
            async with places:  # a call that waits for its place is not begun
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

    def _model(self, asked: str | None) -> str | None:
        """The model that merges; None to keep the best of each group."""
        try:
            return None if asked is None else self._work.model.named("slim", asked)
        except NotAvailable:
            return None

    async def _ask(
        self, process: Process, model: str, begun: bool, number: int, items: Sequence[Eligible], group: Group
    ) -> None:
        """Have the model merge one group, and propose what it says; the best is kept where it says nothing of use."""
        if len({(item.task, item.content) for item in items}) == 1:
            await self._keep_proposed(process, [_proposal(number, items, group)])
            return
        call = _call(process, number)
        if not begun:
            event = self._work.event(process, SlimStarted(call=call, model=model), f"started:{call}")
            (kept,) = await self._work.keep([event])
            if kept.duplicate:
                raise VersionConflict(f"another node works on {process.id}")
        said: MergedText | None = None
        try:
            answer = await self._work.ask(process, "slim", _prompt(items), MergedText, key=call, model=model)
            said, usage = answer.said, answer.usage
        except (ModelRefused, ModelFailed) as error:
            if not isinstance(told := error.details.get("usage"), dict):
                raise  # nothing was billed: the endpoint is not to be reached
            usage = Usage.model_validate(told)
        await self._keep_proposed(process, [_proposal(number, items, group, said, usage)])

    async def _keep_proposed(self, process: Process, facts: Sequence[SlimProposed]) -> None:
        await self._work.keep([self._work.event(process, fact, f"proposed:{fact.group}") for fact in facts])


async def _grouped(items: Sequence[Eligible], threshold: float) -> Found:
    """The groups among the items, each of items that are seen by the same."""
    apart: dict[str, list[Item]] = {}
    for each in items:
        text = f"{each.task}\n{each.content}"
        told = Item(each.id, text, tuple(each.types), each.quality, each.confidence, each.created_position)
        apart.setdefault(each.among, []).append(told)
    bodies = [body for body in apart.values() if len(body) > 1]
    if sum(map(len, bodies)) > IN_PLACE:
        return await grouped_in_own_process(bodies, threshold)
    return await asyncio.to_thread(grouped, bodies, threshold)


def _call(process: Process, number: int) -> str:
    return f"{process.id}:{number}"


def _no_larger(group: Group) -> Group:
    return Group(group.survivor, group.merged[:MOST_MERGED])


def _proposal(
    number: int,
    items: Sequence[Eligible],
    group: Group,
    said: MergedText | None = None,
    usage: Usage | None = None,
) -> SlimProposed:
    """One group as it is proposed: the survivor's text unless a model wrote one, the types and tags of all of them."""
    survivor, *others = items
    types = list(dict.fromkeys(name for item in items for name in item.types))
    tags = {name: value for item in reversed(items) for name, value in item.tags.items()}
    text = said if said is not None and said.content.strip() else None
    versions = {item.id: item.version for item in others}
    return SlimProposed(
        group=number,
        survivor=survivor.id,
        survivor_version=survivor.version,
        merged=[Similar(id=each.id, version=versions[each.id], similarity=each.similarity) for each in group.merged],
        types=types if types != survivor.types and len(types) <= 16 else None,
        task=text.task if text is not None and text.task.strip() else None,
        content=text.content if text is not None else None,
        tags=tags if tags != survivor.tags else None,
        usage=usage,
    )


def _prompt(items: Sequence[Eligible]) -> Prompt:
    texts = list(dict.fromkeys(f"task: {item.task}\ncontent:\n{item.content}" for item in items))
    told: list[str] = []
    length = 0
    for text in texts[:TOLD_ITEMS]:
        length += len(text)
        if told and length > TOLD_CHARACTERS:
            break
        told.append(f"<item>\n{text}\n</item>")
    return prompt("slim", "\n\n".join(told))
