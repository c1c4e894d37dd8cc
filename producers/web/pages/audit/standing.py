"""How the node stands: chain, certificates, views, sizes, models, and the jobs that were started."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.pages.audit.jobs import STARTED_HERE
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

AUDIT = f"{HOME}/audit"
_MOST_JOBS, _MOST_CERTIFICATES = 20, 10


async def audit(_: Site, visit: Visit) -> Response:
    """The page."""
    status, models, jobs, certificates = await asyncio.gather(
        visit.ledger.status(),
        visit.ledger.models(),
        visit.ledger.wire.look("/api/admin/jobs", {"limit": _MOST_JOBS}),
        visit.ledger.wire.look("/api/admin/certificates", {"limit": _MOST_CERTIFICATES}),
    )
    return page(
        visit,
        "audit/standing.html",
        status=status,
        models=models["models"],
        jobs=jobs["jobs"],
        certificates=certificates["certificates"],
        kinds=STARTED_HERE,
        path=AUDIT,
    )


PAGES = (Page(AUDIT, audit),)
