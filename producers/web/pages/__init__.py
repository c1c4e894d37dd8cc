"""The pages, one module a page or a family of them."""

from __future__ import annotations

from producers.web.pages import (
    audit,
    bulk,
    cleaning,
    files,
    item,
    item_changes,
    item_revising,
    knowledge,
    new,
    overview,
    review,
    sessions,
    settings,
    sign_in,
    traces,
)

PAGES = (
    *sign_in.PAGES,
    *settings.PAGES,
    *files.PAGES,
    *overview.PAGES,
    *cleaning.PAGES,
    *new.PAGES,
    *bulk.PAGES,
    *knowledge.PAGES,
    *item.PAGES,
    *item_changes.PAGES,
    *item_revising.PAGES,
    *traces.PAGES,
    *sessions.PAGES,
    *review.PAGES,
    *audit.PAGES,
)
"""Every address, the more specific ones first."""
