"""A proof of an item, as a file: whoever has it and the key checks the events behind the item without the log."""

from __future__ import annotations

from urllib.parse import quote

import orjson
from starlette.responses import Response

from kledger.contract.errors import InvalidPayload, NotCertified, UnknownKnowledge
from producers.web.addresses import HOME
from producers.web.headers import OF_A_PAGE
from producers.web.pages.audit.standing import standing
from producers.web.site import Page, Site
from producers.web.visit import Visit

_MOST_NAME = 80
_REFUSED = {InvalidPayload: 422, UnknownKnowledge: 404, NotCertified: 503}


async def proof(_: Site, visit: Visit) -> Response:
    """The proof of the item that the address names; where there is none, the page of its form says why."""
    named = visit.text("id") or ""
    try:
        if not named:
            raise InvalidPayload("name the item whose proof you want", errors=[{"field": "id"}])
        document = await visit.ledger.prove(named)
    except tuple(_REFUSED) as error:
        return await standing(visit, named, error, _REFUSED[type(error)])
    file = quote(f"proof-{named[:_MOST_NAME]}.json", safe="")
    headers = {**OF_A_PAGE, "Content-Disposition": f"attachment; filename*=UTF-8''{file}"}
    body = orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
    return Response(body, headers=headers, media_type="application/json")


PAGES = (Page(f"{HOME}/audit/proof", proof),)
