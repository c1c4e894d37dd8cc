"""Overview: how much is known, how sure it is, what came of it, and how the node stands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.responses import Response

from kledger.answers.admin import NodeStatus
from kledger.contract.errors import LedgerError
from producers.web.addresses import HOME
from producers.web.figures.days import bars, spans
from producers.web.rendering import page
from producers.web.rights import coordinates
from producers.web.site import Page, Site
from producers.web.visit import Visit

RANGES = ("7", "30", "90", "365")
_COST = "SELECT count(*), sum(cost_usd), coalesce(sum(calls), 0)::BIGINT FROM model_usage"


@dataclass(frozen=True, slots=True)
class Cost:
    """What models cost so far: answers, calls, and dollars where a price is known."""

    answers: int
    calls: int
    dollars: float | None


async def overview(_: Site, visit: Visit) -> Response:
    """The page."""
    days = visit.one_of("days", RANGES, "30")
    project = visit.session.caller.project
    found, status, cost, conflicts = await asyncio.gather(
        visit.ledger.overview(days=int(days)), _status(visit), _cost(visit), visit.ledger.conflicts(limit=1)
    )
    shown = spans(found["days"])
    return page(
        visit,
        "overview.html",
        found=found,
        status=status,
        cost=cost,
        conflicts=conflicts["total"],
        decides=visit.session.operator or (project is not None and await coordinates(visit, project)),
        days=days,
        ranges=RANGES,
        shown=shown,
        figure=bars(shown, visit.words),
        lists=(
            ("Most helpful", found["most_helpful"], f"{HOME}/knowledge?sort=helpful"),
            ("Turned harmful", found["turned_harmful"], None),
            ("Never recalled", found["never_recalled_items"], f"{HOME}/knowledge?concern=never_recalled&sort=oldest"),
        ),
    )


async def _status(visit: Visit) -> NodeStatus | None:
    return await visit.ledger.status() if visit.session.operator else None


async def _cost(visit: Visit) -> Cost | None:
    """None where no model was asked; the page is of more than it, and does without what cannot be asked now."""
    if not visit.session.operator:
        return None
    try:
        ((answers, dollars, calls),) = (await visit.ledger.sql(_COST))["rows"]
    except LedgerError:
        return None
    return Cost(answers, calls, dollars) if answers else None


PAGES = (Page(HOME, overview),)
