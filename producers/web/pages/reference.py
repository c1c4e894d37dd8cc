"""The reference of the API, as the node renders it, for whoever is signed in: a browser has no token for /docs."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from producers.web.addresses import HOME
from producers.web.headers import OF_A_PAGE
from producers.web.site import Page, Site
from producers.web.visit import Visit


async def reference(_: Site, visit: Visit) -> Response:
    """The page, with the policy that it has of its own: it has a style and no script."""
    return await _same(visit, "/docs", "Content-Security-Policy", "Referrer-Policy")


async def document(_: Site, visit: Visit) -> Response:
    """The OpenAPI document that the page links to."""
    return await _same(visit, "/openapi.json")


async def what_is_where(_: Site, __: Visit) -> Response:
    """Where the other link of the page leads: the pages begin at the overview."""
    return RedirectResponse(HOME, 303, headers=OF_A_PAGE)


async def _same(visit: Visit, path: str, *kept: str) -> Response:
    """What the node answers the person at another address, with these of its headers."""
    connection = visit.session.ledger.wire.connection
    answer = await connection.send("GET", path, params={}, headers={}, repeatable=True)
    headers = {**OF_A_PAGE, **{name: answer.headers[name] for name in kept}}
    return Response(answer.content, headers=headers, media_type=answer.headers["Content-Type"])


PAGES = (
    Page(f"{HOME}/reference", reference),
    Page(f"{HOME}/openapi.json", document),
    Page(f"{HOME}/", what_is_where),
)
