"""The pages, one module a page or a family of them."""

from __future__ import annotations

from producers.web.pages import cleaning, files, knowledge, new, overview, retiring, settings, sign_in

PAGES = (
    *sign_in.PAGES,
    *settings.PAGES,
    *files.PAGES,
    *overview.PAGES,
    *cleaning.PAGES,
    *new.PAGES,
    *retiring.PAGES,
    *knowledge.PAGES,
)
"""Every address, the more specific ones first."""
