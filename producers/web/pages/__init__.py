"""The pages, one module a page or a family of them."""

from __future__ import annotations

from producers.web.pages import files, knowledge, live, overview, reference, settings, sign_in, sql, why

PAGES = (
    *sign_in.PAGES,
    *settings.PAGES,
    *files.PAGES,
    *overview.PAGES,
    *knowledge.PAGES,
    *live.PAGES,
    *reference.PAGES,
    *sql.PAGES,
    *why.PAGES,
)
"""Every address, the more specific ones first."""
