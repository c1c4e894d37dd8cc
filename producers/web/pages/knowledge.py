"""What is known: a list or a search of items, narrowed by filters, as cards or as a table."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from kledger.answers.knowledge import Item
from producers.web.addresses import HOME
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

PAGE_SIZE = 24


async def knowledge(_: Site, visit: Visit) -> Response:
    """The page; with `q` a search, as agents search."""
    query = visit.text("q")
    types, owner = visit.texts("types"), visit.text("owner")
    items: Sequence[Item]
    following: int | None = None
    if query:
        found = await visit.ledger.search(query, top_k=PAGE_SIZE, types=types or None, owner=owner, record=False)
        items, total = found["results"], found["count"]
    else:
        before = visit.number("before", 0) or None
        listed = await visit.ledger.list(
            limit=PAGE_SIZE, before=before, types=types or None, scopes=visit.texts("scopes") or None, owner=owner
        )
        items, total, following = listed["results"], listed["total"], listed["next"]
    return page(visit, "knowledge.html", query=query, items=items, total=total, following=following)


PAGES = (Page(f"{HOME}/knowledge", knowledge),)
