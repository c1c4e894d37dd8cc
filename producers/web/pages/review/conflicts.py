"""Conflicts: two items that contradict each other, beside each other; one holds, both do, or one says both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from kledger.answers.knowledge import WholeItem
from kledger.answers.models import Conflict
from kledger.contract.errors import InvalidPayload
from kledger.contract.words import ConflictStatus
from producers.web.differences import Part, beside, differences
from producers.web.pages.review.items import items_of, titles_of
from producers.web.pages.review.reasons import reason_told
from producers.web.pages.review.tab import REVIEW, Tab, decided, offset, reason
from producers.web.site import Site, change
from producers.web.undoing import changed_since, version_now
from producers.web.visit import Visit

PER_PAGE = 5
_UNDO = f"{REVIEW}/conflicts/undo"


@dataclass(frozen=True, slots=True)
class Row:
    """A conflict with both sides, as far as they can be read, and what differs between them."""

    conflict: Conflict
    first: WholeItem | None
    second: WholeItem | None
    parts: list[Part]


async def shown(visit: Visit) -> Mapping[str, Any]:
    """A page of them; with `of=resolved` those that were decided."""
    status: ConflictStatus = "resolved" if visit.text("of") == "resolved" else "recorded"
    listed = await visit.ledger.conflicts(status=status, limit=PER_PAGE, offset=offset(visit))
    items = await items_of(visit, (each for one in listed["results"] for each in (one["first"], one["second"])))
    rows = await beside(
        lambda: [_row(one, items.get(one["first"]), items.get(one["second"])) for one in listed["results"]]
    )
    told = {"reason_told": lambda reason: reason_told(reason, visit.words)}
    return {**told, "total": listed["total"], "rows": rows, "of": status, "size": PER_PAGE, "offset": offset(visit)}


def _row(conflict: Conflict, first: WholeItem | None, second: WholeItem | None) -> Row:
    parts = differences(first["content"], second["content"]) if first and second else []
    return Row(conflict, first, second, parts)


async def decide(_: Site, visit: Visit) -> Response:
    """Keep the side that the form names, or both; with a text that side says it from now on."""
    what, winner = visit.said("what"), visit.said("winner")
    if what not in ("keep", "both", "merge") or (what != "both" and not winner):
        raise InvalidPayload("choose which side holds: keep one, keep both, or merge them into one", errors=[])
    merge, before = None, 0
    if what == "merge":
        text = visit.said("content").replace("\r\n", "\n")  # as a browser ends the lines of a form
        merge = {"content": text} | ({"task": task} if (task := visit.said("task")) else {})
        before = (await visit.ledger.get(winner))["version"]
    resolved = await visit.ledger.resolve_conflict(
        visit.said("id"), None if what == "both" else winner, merge=merge, reason=reason(visit)
    )
    words, retired = visit.words, resolved["retired"] or ""
    kept, gone = await titles_of(visit, winner, retired)
    left = await version_now(visit, retired) if retired else ""
    if resolved["merged"]:
        told = words("“{task}” says both now.", task=kept)
        visit.notify(told, undo=_UNDO, restore=retired, revert=winner, to=str(before), of_version=left)
    elif retired:
        told = words("“{task}” holds, and “{other}” is out of recall.", task=kept, other=gone)
        visit.notify(told, undo=_UNDO, restore=retired, of_version=left)
    elif resolved["winner"]:
        visit.notify(words("“{task}” holds. The other item stays: it is not yours to retire.", task=kept))
    else:
        visit.notify(words("Both hold."))
    return decided(visit, "conflicts")


async def undo(_: Site, visit: Visit) -> Response:
    """Bring back what a decision retired, and what it wrote anew unless it was changed since; it stays decided."""
    retired = visit.said("restore")
    if retired and await changed_since(visit, retired):
        visit.notify(visit.words("It was changed since, and stays as it is."), bad=True)
        return decided(visit, "conflicts")
    if merged := visit.said("revert"):
        before = visit.said_number("to")
        await visit.ledger.revert(merged, before, expected_version=before + 1)
    if retired:
        await visit.ledger.restore(retired)
    visit.notify(visit.words("Both items are again what they were; the conflict stays decided."))
    return decided(visit, "conflicts")


TAB = Tab(
    "conflicts",
    "Conflicts",
    shown,
    (change(f"{REVIEW}/conflicts", decide), change(_UNDO, undo)),
)
