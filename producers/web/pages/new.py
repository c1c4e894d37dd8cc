"""Something new: a person states an item, in a form that keeps what was written where the node refuses it."""

from __future__ import annotations

from uuid import uuid4

from starlette.responses import Response

from kledger.contract.errors import LedgerError
from kledger.contract.lists import split_words
from kledger.contract.scopes import OPERATOR
from producers.web.addresses import HOME
from producers.web.rendering import back_to, item_page, page
from producers.web.site import Page, Site, change
from producers.web.tags import stated_tags
from producers.web.undoing import version_now
from producers.web.visit import Visit

FIELDS = ("task", "content", "types", "scopes", "tags", "owner")
_REFUSED = 422


async def form(_: Site, visit: Visit) -> Response:
    """The form, empty or begun as the address says."""
    own = (visit.session.who() or [OPERATOR if visit.session.operator else ""])[0]
    begun = {name: visit.text(name) or "" for name in FIELDS}
    return _form(visit, {**begun, "owner": begun["owner"] or own, "key": uuid4().hex})


def _form(visit: Visit, stated: dict[str, str], error: LedgerError | None = None) -> Response:
    return page(visit, "new.html", 200 if error is None else _REFUSED, stated=stated, error=error)


async def save(_: Site, visit: Visit) -> Response:
    """Save it; sent twice it is saved once."""
    stated = {name: visit.said(name) for name in (*FIELDS, "key")}
    try:
        saved = await visit.ledger.save(
            stated["task"] or None,
            stated["content"],
            _parts(stated["types"]),
            scopes=_parts(stated["scopes"]) or None,
            tags=stated_tags(stated["tags"]) or None,
            owner=stated["owner"] or None,
            idempotency_key=stated["key"] or None,
        )
    except LedgerError as error:
        return _form(visit, {**stated, "key": uuid4().hex}, error)
    told, undo = visit.words("Saved at position {n}.", n=saved["position"]), item_page(saved["id"], "retire")
    visit.notify(told, undo=undo, of_version=await version_now(visit, saved["id"]))
    return back_to(visit, item_page(saved["id"]))


def _parts(text: str) -> list[str]:
    return split_words(text.replace("，", ","))


PAGES = (Page(f"{HOME}/new", form), change(f"{HOME}/new", save))
