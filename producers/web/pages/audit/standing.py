"""How the node stands: chain, certificates, views, sizes, models, and the jobs that were started."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from kledger.contract.errors import LedgerError
from producers.web.addresses import HOME
from producers.web.pages.audit.jobs import STARTED_HERE
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

AUDIT = f"{HOME}/audit"
_MOST = 20


async def audit(_: Site, visit: Visit) -> Response:
    """The page."""
    return await standing(visit)


async def standing(visit: Visit, wanted: str = "", error: LedgerError | None = None, code: int = 200) -> Response:
    """The page; with the item whose proof was asked for, and why there is none."""
    status, models, jobs, kept = await asyncio.gather(
        visit.ledger.status(),
        visit.ledger.models(),
        visit.ledger.jobs(),
        visit.ledger.certificates(),
    )
    return page(
        visit,
        "audit/standing.html",
        code,
        status=status,
        models=models["models"],
        jobs=jobs["jobs"][:_MOST],
        certificates=kept["certificates"][:_MOST],
        checkpoints=kept["checkpoints"][:_MOST],
        kinds=STARTED_HERE,
        path=AUDIT,
        wanted=wanted,
        error=error,
    )


PAGES = (Page(AUDIT, audit),)
