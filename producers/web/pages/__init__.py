"""The pages, one module a page or a family of them."""

from __future__ import annotations

from producers.web.pages import audit, files, knowledge, overview, review, settings, sign_in

PAGES = (
    *sign_in.PAGES,
    *settings.PAGES,
    *files.PAGES,
    *overview.PAGES,
    *knowledge.PAGES,
    *review.PAGES,
    *audit.PAGES,
)
"""Every address, the more specific ones first."""
