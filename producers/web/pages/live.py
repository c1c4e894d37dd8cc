"""What changes while somebody looks, as server-sent events."""

from __future__ import annotations

from starlette.responses import Response

from kledger.contract.errors import Unauthenticated
from producers.web.addresses import HOME
from producers.web.live.stream import Stream
from producers.web.site import Page, Site
from producers.web.visit import Visit


async def live(site: Site, visit: Visit) -> Response:
    """A stream of `changed`: ids of items, the number of changes after the position `after`, and up to where."""
    if visit.signed_in is None:  # nobody reads where a stream would lead to
        raise Unauthenticated("you are signed out: sign in, and open the page again")
    follower = site.followers.open(visit.session, visit.number("after", visit.position))
    return Stream(site.followers, follower)


PAGES = (Page(f"{HOME}/live", live, open=True, watches=True),)
