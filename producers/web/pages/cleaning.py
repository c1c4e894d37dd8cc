"""Cleaning: the person's memories that are over leave, after they were shown; all come back by one click."""

from __future__ import annotations

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.rendering import back_to, page
from producers.web.site import Page, Site, change
from producers.web.visit import Visit

MOST_SHOWN = 200


async def preview(_: Site, visit: Visit) -> Response:
    """What would be cleaned; nothing is."""
    would = await visit.ledger.clean_memories(dry_run=True)
    return page(visit, "clean.html", would=would, shown=would["ids"][:MOST_SHOWN])


async def clean(_: Site, visit: Visit) -> Response:
    """Clean, and say how many went."""
    done = await visit.ledger.clean_memories(dry_run=False)
    more = visit.words("There are others; clean again.") if done["more"] else ""
    text = visit.words("{n} expired memories were cleaned.", n=done["count"]) + (" " + more if more else "")
    visit.notify(text)
    return back_to(visit, HOME)


PAGES = (Page(f"{HOME}/clean", preview), change(f"{HOME}/clean", clean))
