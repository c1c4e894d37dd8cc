"""How the node stands: chain, certificates, views, sizes, models, and the jobs that were started."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from kledger.client.admin import ADMIN
from kledger.contract.errors import LedgerError
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
        _listed(visit, "jobs", _MOST_JOBS),
        _listed(visit, "certificates", _MOST_CERTIFICATES),
    )
    return page(
        visit,
        "audit/standing.html",
        status=status,
        models=models["models"],
        jobs=jobs,
        certificates=certificates,
        kinds=STARTED_HERE,
        path=AUDIT,
    )


async def _listed(visit: Visit, name: str, most: int) -> list[Any] | None:
    """The newest of a list of the node's; None where it keeps no such list."""
    try:
        answer = await visit.ledger.wire.look(f"{ADMIN}/{name}", {"limit": most})
    except LedgerError as error:
        if error.code != "unknown_route":
            raise
        return None
    found: list[Any] = answer[name]
    return found


PAGES = (Page(AUDIT, audit),)
