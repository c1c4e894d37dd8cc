"""Retiring one item and restoring it: by a form on its card and its page, each undone by the other."""

from __future__ import annotations

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.rendering import back_to, item_page
from producers.web.site import Site, change
from producers.web.visit import Visit


async def retire(_: Site, visit: Visit) -> Response:
    """Take the item out of recall."""
    item_id = visit.part("id")
    await visit.ledger.retire(item_id, reason=visit.said("reason") or None)
    visit.notify(visit.words("Retired: {id}", id=item_id), undo=f"{item_page(item_id)}/restore")
    return _back(visit, item_id)


async def restore(_: Site, visit: Visit) -> Response:
    """Bring it back."""
    item_id = visit.part("id")
    await visit.ledger.restore(item_id, reason=visit.said("reason") or None)
    visit.notify(visit.words("Restored: {id}", id=item_id), undo=f"{item_page(item_id)}/retire")
    return _back(visit, item_id)


def _back(visit: Visit, item_id: str) -> Response:
    return back_to(visit, visit.said("back") or item_page(item_id))


PAGES = (
    change(f"{HOME}/items/{{id}}/retire", retire),
    change(f"{HOME}/items/{{id}}/restore", restore),
)
