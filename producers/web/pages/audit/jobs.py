"""Jobs: started here, and watched until they are over."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from kledger.contract.errors import InvalidPayload
from kledger.contract.words import StartableJob
from producers.web.addresses import HOME
from producers.web.rendering import back_to, page, segment
from producers.web.site import Page, Site, change
from producers.web.visit import Visit

JOBS = f"{HOME}/audit/jobs"
STARTED_HERE: Mapping[StartableJob, str] = {
    "verify": "Fold the log from its start beside the live views, and compare; changes nothing.",
    "audit": "Read the log from its start, and compare it with everything that was signed of it.",
    "rebuild": "Fold the views anew from the log, compare, and serve the new ones; leaves a signed certificate.",
    "snapshot": "Publish a frozen copy of the views for analysts.",
}
"""The jobs that need nothing stated, and what each does."""


async def start(_: Site, visit: Visit) -> Response:
    """Start a job, and watch it."""
    kind = next((known for known in STARTED_HERE if known == visit.said("kind")), None)
    if kind is None:
        raise InvalidPayload(f"no such job is started here: choose {', '.join(STARTED_HERE)}", errors=[])
    job = await visit.ledger.start_job(kind)
    return back_to(visit, f"{JOBS}/{segment(job['id'])}")


async def job(_: Site, visit: Visit) -> Response:
    """A job with its progress and what it came to; for a script the progress alone."""
    found = await visit.ledger.job(visit.part("id"))
    return page(visit, "audit/progress.html" if visit.partial else "audit/job.html", job=found)


PAGES = (change(JOBS, start), Page(f"{JOBS}/{{id}}", job))
