"""Many changes of items at once: each judged alone by the rules of a single change, and published in atomic batches.

Looked up is everything at once: the items, and the coordinators of what projects share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kledger.answers.bulk import BulkCounts, BulkResult
from kledger.contract.errors import LedgerError, VersionConflict
from kledger.contract.scopes import Caller
from kledger.contract.words import BulkOutcome
from ledger.event import Appended, Fact, Lineage, NewEvent
from ledger.item_status import MAKES
from producers.operations.desk import Desk, folded, reach_head
from producers.operations.judged import refused_of
from producers.operations.knowledge.changes import refuse_status
from producers.operations.knowledge.over import are_over, over
from producers.operations.knowledge.superseding import supersede_now
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.whose import acting_as, coordinators
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import SLICE, publish_each
from producers.operations.updated import error_body
from projections.overview.bulks import tasks_of
from projections.views.knowledge import ask
from projections.views.knowledge.ask import Standing

Stating = Callable[[Standing], Fact | None]
"""The fact that changes an item as it is; None where there is nothing to change. Raises LedgerError where it cannot."""


@dataclass(frozen=True, slots=True)
class Change:
    """One item's change: what is stated of it, the id of its event, and whether a coordinator may make it too."""

    stating: Stating
    event_id: str
    as_coordinator: bool = True


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a change comes to: an event to publish, nothing to do, or an error."""

    item: Standing | None = None
    actor: str = ""
    fact: Fact | None = None
    error: LedgerError | None = None


async def carry_out(
    desk: Desk, caller: Caller, lineage: Lineage, changes: Mapping[str, Change], *, dry_run: bool
) -> list[BulkResult]:
    """What becomes of each change, by the ids of the items, in their order.

    Raises BrokerUnavailable, PayloadTooLarge, ViewBehind; then some may be published, and the same changes with the
    same ids of events can be sent again.
    """
    await reach_head(desk)
    results: list[BulkResult] = []
    ids = list(changes)
    for start in range(0, len(ids), SLICE):
        part = {item_id: changes[item_id] for item_id in ids[start : start + SLICE]}
        if dry_run:
            judged = await _judged(desk, caller, part)
            results += [_result(item_id, each, "would") for item_id, each in judged.items()]
        else:
            results += await _published(desk, caller, lineage, part)
    return results


async def _judged(desk: Desk, caller: Caller, changes: Mapping[str, Change]) -> dict[str, _Judged]:
    standings = await desk.view.ask(ask.standings, desk.org, caller, list(changes))
    leads = await coordinators(desk, caller, standings.values())
    gone = await are_over(desk, [each.id for each in standings.values() if each.status == "active"])
    judged = {}
    for item_id, change in changes.items():
        try:
            judged[item_id] = _judge(caller, item_id, standings.get(item_id), change, leads.get(item_id), gone)
        except LedgerError as error:
            judged[item_id] = _Judged(error=error)
    return judged


def _judge(
    caller: Caller, item_id: str, item: Standing | None, change: Change, lead: str | None, gone: Collection[str]
) -> _Judged:
    """As a single change is judged; `gone` are memories that are over.

    Raises UnknownKnowledge, NotOwner, IllegalState, Forbidden, InvalidPayload.
    """
    if item is None:
        raise unknown(item_id)
    actor = acting_as(caller, item, lead if change.as_coordinator else None)
    fact = change.stating(item)
    if item_id in gone and (fact is None or fact.name not in MAKES):
        raise over(item_id)
    if fact is not None:
        refuse_status(fact, item)
    return _Judged(item, actor, fact)


async def _published(desk: Desk, caller: Caller, lineage: Lineage, changes: Mapping[str, Change]) -> list[BulkResult]:
    """Judge and publish a slice in one batch; judged anew where an item was changed meanwhile."""
    lasts: dict[str, int] = {}
    for _ in range(ATTEMPTS):
        judged = await _judged(desk, caller, changes)
        events = [
            NewEvent(
                each.fact,
                item_id,
                each.actor,
                desk.org,
                lineage,
                id=changes[item_id].event_id,
                expects=lasts.get(item_id, each.item.position),
            )
            for item_id, each in judged.items()
            if each.fact is not None and each.item is not None
        ]
        try:
            appended = await publish_each(desk.ledger, desk.tally, events)
        except VersionConflict:
            # An event that counts no more stands between, or somebody was faster: the log says what is last.
            lasts = {event.entity_id: await folded(desk, "knowledge", event.entity_id) for event in events}
            continue
        became = {event.entity_id: each for event, each in zip(events, appended, strict=True)}
        kept = {item_id: each for item_id, each in became.items() if not isinstance(each, LedgerError)}
        judged |= {item_id: _Judged(error=each) for item_id, each in became.items() if isinstance(each, LedgerError)}
        return await _came_of(desk, caller, lineage, judged, kept)
    raise VersionConflict("others keep writing to these items: try again")


async def _came_of(
    desk: Desk, caller: Caller, lineage: Lineage, judged: Mapping[str, _Judged], kept: Mapping[str, Appended]
) -> list[BulkResult]:
    """The results, after the gate has judged too; what came in force supersedes what it names."""
    refused = await refused_of(desk, [each.position for each in kept.values()])
    results = []
    for item_id, each in judged.items():
        appended = kept.get(item_id)
        if appended is None:
            results.append(_result(item_id, each, "done"))
            continue
        error = refused.get(appended.position)
        if error is not None:
            results.append(_result(item_id, _Judged(error=error), "refused"))
            continue
        results.append(_result(item_id, each, "done", appended.position))
        item = each.item
        if item is not None and item.supersedes is not None and item.status != "active":
            await supersede_now(desk, caller, lineage, item_id, appended.event_id)
    return results


def _result(item_id: str, judged: _Judged, outcome: BulkOutcome, position: int | None = None) -> BulkResult:
    if judged.error is not None:
        return BulkResult(id=item_id, task=None, outcome="refused", position=None, error=error_body(judged.error))
    if judged.fact is None:
        return BulkResult(id=item_id, task=None, outcome="unchanged", position=None, error=None)
    return BulkResult(id=item_id, task=None, outcome=outcome, position=position, error=None)


async def titled(desk: Desk, caller: Caller, results: Sequence[BulkResult]) -> list[BulkResult]:
    """The results with the tasks of the items that the caller may read."""
    tasks = await desk.view.ask(tasks_of, desk.org, caller, [each["id"] for each in results])
    return [{**each, "task": tasks.get(each["id"])} for each in results]


def last_position(desk: Desk, results: Sequence[BulkResult]) -> int:
    """The position of the last event among these results, else the view's."""
    return max((each["position"] for each in results if each["position"] is not None), default=desk.view.position)


def counted(results: Sequence[BulkResult]) -> BulkCounts:
    """How many were done (or would be), unchanged and refused."""
    done = sum(each["outcome"] in ("done", "would") for each in results)
    unchanged = sum(each["outcome"] == "unchanged" for each in results)
    return BulkCounts(done=done, unchanged=unchanged, refused=len(results) - done - unchanged)
