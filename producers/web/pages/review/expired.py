"""Expired memories: short ones whose time is over; who owns them retires them, after a look at which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from producers.web.errors.telling import told
from producers.web.pages.review.tab import REVIEW, Tab, decided, offset
from producers.web.site import Site, change
from producers.web.visit import Visit

PER_PAGE = 20
_UNDO = f"{REVIEW}/expired/undo"
_SEPARATOR = "\n"


async def shown(visit: Visit) -> Mapping[str, Any]:
    """A page of them; with `preview=1` also which of them cleaning would retire."""
    listed = await visit.ledger.memories(status="expired", limit=PER_PAGE, offset=offset(visit))
    preview = await visit.ledger.clean_memories(dry_run=True) if visit.text("preview") else None
    return {
        "total": listed["total"],
        "rows": listed["results"],
        "preview": preview,
        "tasks": {one["id"]: one["task"] for one in listed["results"]},
        "size": PER_PAGE,
        "offset": offset(visit),
    }


async def clean(_: Site, visit: Visit) -> Response:
    """Retire those that are the person's to retire."""
    cleaned = await visit.ledger.clean_memories(dry_run=False)
    told = visit.words("{n} expired memories are out of recall.", n=cleaned["count"])
    visit.notify(told, undo=_UNDO if cleaned["ids"] else None, ids=_SEPARATOR.join(cleaned["ids"]))
    return decided(visit, "expired")


async def undo(_: Site, visit: Visit) -> Response:
    """Bring back what was cleaned; what is in recall already stays."""
    ids = [id for id in visit.said("ids").split(_SEPARATOR) if id]
    restored = await visit.ledger.bulk("restore", ids, dry_run=False)
    visit.notify(visit.words("{n} memories are in recall again.", n=restored["done"]))
    for error in [one["error"] for one in restored["results"] if one["outcome"] == "refused"][:1]:
        visit.notify(told(error, visit.words) if error else "", bad=True)
    return decided(visit, "expired")


TAB = Tab(
    "expired",
    "Expired memories",
    shown,
    (change(f"{REVIEW}/expired", clean), change(_UNDO, undo)),
)
