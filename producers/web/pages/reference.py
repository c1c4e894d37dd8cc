"""The reference of the API for whoever is signed in: their browser has no token that /docs would ask for."""

from __future__ import annotations

from functools import lru_cache

import orjson
from markupsafe import Markup
from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.headers import OF_A_PAGE
from producers.web.reference import reference_of
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit


async def reference(_: Site, visit: Visit) -> Response:
    """The page."""
    about, endpoints = _made(await _document(visit))
    return page(visit, "reference.html", about=about, endpoints=endpoints)


async def document(_: Site, visit: Visit) -> Response:
    """The OpenAPI document that it is made of."""
    return Response(await _document(visit), headers=OF_A_PAGE, media_type="application/json")


async def _document(visit: Visit) -> bytes:
    connection = visit.session.ledger.wire.connection
    return (await connection.send("GET", "/openapi.json", params={}, headers={}, repeatable=True)).content


@lru_cache(maxsize=1)  # it is the same for everybody, as long as the node runs
def _made(content: bytes) -> tuple[str, Markup]:
    described = orjson.loads(content)
    return described["info"]["description"], Markup(reference_of(described))  # it escapes what it holds


PAGES = (Page(f"{HOME}/reference", reference), Page(f"{HOME}/openapi.json", document))
