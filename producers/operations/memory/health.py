"""Health of memories, and cleaning: what is expired is retired by who owns it, after a preview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kledger.answers.memory import Cleaned
from kledger.contract.errors import LedgerError, SubjectForgotten, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeRetired
from ledger.named_ids import named_id
from producers.operations.desk import ANY, Desk, Freshness, folded, reach_head, reach_recalls
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import NAMESPACE, publish_each
from projections.views.knowledge import memory_health as ask

MOST_CLEANED = 1_000
REASON = "expired"
LISTS = {
    "total": "/api/memory?limit=1000",
    "expired": "/api/memory?status=expired&limit=1000",
    "proposed": "/api/memory?status=proposed&limit=1000",
    "conflicting": "/api/memory?concern=conflicting&limit=1000",
    "promoted": "/api/memory?concern=promoted&limit=1000",
    "never_recalled": "/api/memory?concern=never_recalled&limit=1000",
}
"""Where the memories are listed that a number counts."""


async def health(desk: Desk, caller: Caller, *, freshness: Freshness = ANY) -> JsonObject:
    """The numbers over the memories that the caller sees, each with its list. Raises ViewBehind."""
    await reach_recalls(desk, freshness)
    position = desk.view.position
    numbers = await desk.view.ask(ask.health, desk.org, caller, utc_now())
    return {**numbers, "lists": LISTS, "position": position}


async def clean(desk: Desk, caller: Caller, lineage: Lineage, *, dry_run: bool = True) -> Cleaned:
    """Retire the expired memories that the caller may change, up to MOST_CLEANED; a dry run only names them.

    Each can be restored. What was recalled or changed meanwhile stays. Raises BrokerUnavailable, VersionConflict,
    ViewBehind.
    """
    lasts: dict[str, int] = {}
    for _ in range(ATTEMPTS):
        await reach_head(desk)
        found = await desk.view.ask(ask.to_clean, desk.org, caller, utc_now(), MOST_CLEANED + 1)
        due, more, position = found[:MOST_CLEANED], len(found) > MOST_CLEANED, desk.view.position
        if dry_run or not due:
            return _cleaned(due, more, position, dry_run)
        try:
            kept = await _retired(desk, lineage, due, lasts)
        except VersionConflict:
            # Something was appended to one of them meanwhile, which may have brought it back: they are looked at anew.
            lasts = {each["id"]: await folded(desk, "knowledge", each["id"]) for each in due}
            continue
        gone = [each for each in due if each["id"] in kept]
        return _cleaned(gone, more, max(kept.values(), default=position), dry_run)
    raise VersionConflict("others keep writing to these memories: try again")


async def _retired(desk: Desk, lineage: Lineage, due: Sequence[JsonObject], lasts: Mapping[str, int]) -> dict[str, int]:
    """The position at which each was retired, by its id. Raises VersionConflict where one has changed since."""
    fact = KnowledgeRetired(reason=REASON)
    events = [
        NewEvent(
            *(fact, each["id"], each["owner"], desk.org, lineage),
            id=_cleaning_id(desk.org, each),
            expects=lasts.get(each["id"], each["position"]),
        )
        for each in due
    ]
    outcomes = await publish_each(desk.ledger, desk.tally, events)
    # Nothing more is said under the name of somebody who was forgotten, not even why.
    silent = [
        replace(event, fact=KnowledgeRetired())
        for event, outcome in zip(events, outcomes, strict=True)
        if isinstance(outcome, SubjectForgotten)
    ]
    more = await publish_each(desk.ledger, desk.tally, silent)
    became = [*zip(events, outcomes, strict=True), *zip(silent, more, strict=True)]
    return {event.entity_id: each.position for event, each in became if not isinstance(each, LedgerError)}


def _cleaned(due: Sequence[JsonObject], more: bool, position: int, dry_run: bool) -> Cleaned:
    ids = [each["id"] for each in due]
    return Cleaned(dry_run=dry_run, ids=ids, count=len(ids), more=more, position=position)


def _cleaning_id(org: str, memory: JsonObject) -> str:
    """The id of the event that cleans a memory as it is: two requests at once clean it once."""
    return named_id(NAMESPACE, f"{org}\n{memory['id']}\n{memory['position']}\ncleaned")
