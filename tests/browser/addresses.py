"""Every page of the web interface, by its name and address on a furnished node."""

from __future__ import annotations

from tests.browser.furnished import LAMPS, MESSAGE, PROJECT, SESSION, TRACE

PAGES = {
    "overview": "/ui",
    "knowledge": "/ui/knowledge",
    "knowledge-table": "/ui/knowledge?view=table",
    "search": "/ui/knowledge?q=deploy+at+night",
    "project": f"/org/lantern/ws/{PROJECT}/memory",
    "new": "/ui/new",
    "item": "/ui/items/night-deploys",
    "item-then": "/ui/items/night-deploys?as_of=70",
    "memory": "/ui/items/prefers-typescript",
    "retired": "/ui/items/mail",
    "versions": "/ui/items/night-deploys?show=versions",
    "verdicts": "/ui/items/night-deploys?show=verdicts",
    "item-recalls": "/ui/items/night-deploys?show=recalls",
    "lineage": "/ui/items/night-deploys?show=lineage",
    "access": "/ui/items/night-deploys?show=access",
    "revise": "/ui/items/night-deploys?show=revise",
    "bulk": "/ui/knowledge/bulk?action=retire&id=night-deploys&id=mail",
    "traces": "/ui/traces",
    "trace": f"/ui/traces/{TRACE}",
    "message": f"/ui/messages/{MESSAGE}",
    "sessions": "/ui/sessions",
    "session": f"/ui/sessions/{SESSION}",
    "conflicts": "/ui/review?tab=conflicts",
    "proposals": "/ui/review?tab=proposals",
    "approvals": "/ui/review?tab=approvals",
    "held": "/ui/review?tab=held",
    "expired": "/ui/review?tab=expired",
    "refused": "/ui/review?tab=refused",
    "recalls": "/ui/recalls",
    "why": f"/ui/why?q={LAMPS[0]}+at+the+pier",
    "why-message": "/ui/why?q=when+do+we+deploy&tab=message",
    "audit": "/ui/audit",
    "sql": "/ui/sql",
    "sql-columns": "/ui/sql/columns",
    "reference": "/ui/reference",
    "missing": "/ui/nothing",
}
