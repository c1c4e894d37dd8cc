"""The pages, one module a page or a family of them."""

from __future__ import annotations

from producers.web.pages import (
    audit,
    bulk,
    files,
    goals,
    item,
    item_changes,
    item_revising,
    knowledge,
    live,
    new,
    overview,
    profiles,
    recalls,
    reference,
    review,
    sessions,
    settings,
    sign_in,
    sql,
    traces,
    why,
)

PAGES = (
    *sign_in.PAGES,
    *settings.PAGES,
    *files.PAGES,
    *overview.PAGES,
    *new.PAGES,
    *bulk.PAGES,
    *knowledge.PAGES,
    *item.PAGES,
    *item_changes.PAGES,
    *item_revising.PAGES,
    *traces.PAGES,
    *recalls.PAGES,
    *sessions.PAGES,
    *goals.PAGES,
    *profiles.PAGES,
    *review.PAGES,
    *audit.PAGES,
    *live.PAGES,
    *reference.PAGES,
    *sql.PAGES,
    *why.PAGES,
)
"""Every address, the more specific ones first."""
