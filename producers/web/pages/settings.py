"""How a person likes to read: language and theme."""

from __future__ import annotations

from typing import get_args

from starlette.responses import Response

from kledger.contract.language import LANGUAGES
from producers.web.addresses import HOME
from producers.web.cookies import LANGUAGE, THEME, keep_liking
from producers.web.rendering import back_to
from producers.web.site import Page, Site
from producers.web.visit import Theme, Visit


async def keep(_: Site, visit: Visit) -> Response:
    """Keep what was chosen, in cookies, and go back."""
    response = back_to(visit)
    for name, field, known in ((LANGUAGE, "language", LANGUAGES), (THEME, "theme", get_args(Theme))):
        if (chosen := visit.said(field)) in known:
            keep_liking(response, visit.request, name, chosen)
    return response


PAGES = (Page(f"{HOME}/settings", keep, ("POST",), open=True),)
"""Whoever signs in reads the form already."""
