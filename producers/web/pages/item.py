"""One item: what it says now and said then, its versions, verdicts, recalls and lineage, and who may see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response

from kledger.answers.knowledge import WholeItem
from kledger.answers.sharing import Why
from kledger.contract.errors import LedgerError
from ledger.item_status import fault_of_status
from producers.web.addresses import DOTS, HOME
from producers.web.headers import OF_A_PAGE
from producers.web.item.form import filled
from producers.web.item.lineage import lineage_of
from producers.web.item.then import Then, as_of, then_of
from producers.web.item.told import made_so, told_of
from producers.web.item.versions import versions_of
from producers.web.once import fresh
from producers.web.references import EVENTS, RELATIONS
from producers.web.rendering import item_page, page
from producers.web.site import Page, Site
from producers.web.visit import Visit
from projections.views.knowledge.layers import layer_of
from projections.views.lineage.roles import is_item

VERDICTS, RECALLS, CONFLICTS = 50, 50, 10
MOST_INLINE = 20_000
"""Characters of a content that stand on the page at first, and in a form on it; a longer one has a page of its own."""
Context = dict[str, Any]


async def item(_: Site, visit: Visit) -> Response:
    """The page; `show` is the part of it, `as_of` a position or a moment."""
    item_id = visit.part("id")
    show = visit.one_of("show", tuple(_PARTS), "now")
    whole, why, part = await asyncio.gather(
        visit.ledger.get(item_id), visit.ledger.why_visible(item_id), _PARTS[show](visit, item_id)
    )
    if show == "now":
        part |= await _of_now(visit, whole, part["then"])
    if show == "lineage":  # it names the item in its figure
        part = await _lineage(visit, whole)
    return page(visit, "item.html", 200, show=show, **about(whole, why), **part)


def about(whole: WholeItem, why: Why) -> dict[str, object]:
    """What every part of the page knows of its item, and what the person may do with it."""
    you, status = why["may_change"]["you"], whole["status"]

    def takes(event: str) -> bool:
        return fault_of_status(f"knowledge.{event}", whole["id"], status) is None

    decides = you in ("owner", "operator", "coordinator")
    return {
        "item": whole,
        "why": why,
        "layer": layer_of({**whole}),
        "beside": {"id": whole["id"]} if whole["id"] in DOTS else {},
        "once": fresh(),
        "may": {
            "revise": you is not None and takes("revised"),
            "retire": decides and takes("retired"),
            "restore": decides and takes("restored"),
            "revert": you in ("owner", "operator") and takes("reverted"),
            "share": you in ("owner", "operator") and takes("shared"),
            "rate": status != "proposed" and takes("rated"),
            "confirm": "memory" in whole and status != "proposed" and takes("confirmed"),
        },
        "most_inline": MOST_INLINE,
        "form": filled(whole),
    }


async def _now(visit: Visit, item_id: str) -> Context:
    then, conflicts = await asyncio.gather(
        then_of(visit.ledger, item_id, as_of(visit)),
        visit.ledger.conflicts(status=None, item_id=item_id, limit=CONFLICTS),
    )
    return {"then": then, "conflicts": conflicts, "whole_text": visit.one_of("text", ("whole",), "")}


async def _of_now(visit: Visit, whole: WholeItem, then: Then) -> dict[str, object]:
    """Who told it, in which conversation, until when a short memory lives, and who made it what its status says."""
    told = told_of(whole, then.versions)
    has_session, ends = await asyncio.gather(
        _has_session(visit, told.session), _ends(visit, whole["id"]) if _is_short(whole) else _has_session(visit, None)
    )
    return {"told": told, "has_session": has_session, "ends": ends, "made_so": made_so(whole, then.versions)}


def _is_short(item: WholeItem) -> bool:
    return "memory" in item and item["memory"]["layer"] == "short"


async def _ends(visit: Visit, item_id: str) -> str | None:
    return (await visit.ledger.memory(item_id)).get("expires_at")


async def _has_session(visit: Visit, session_id: str | None) -> str | None:
    """The session, where the person may open it."""
    if session_id is None:
        return None
    try:
        await visit.ledger.session(session_id).messages(limit=1)
    except LedgerError:
        return None
    return session_id


async def _versions(visit: Visit, item_id: str) -> Context:
    versions = await versions_of(visit.ledger, item_id, visit.number("before", 0) or None)
    return {"versions": versions, "events": EVENTS}


async def _verdicts(visit: Visit, item_id: str) -> Context:
    before = visit.number("before", 0) or None
    life = await visit.ledger.history(item_id, limit=VERDICTS, before=before, shorten=0)
    cases = life["feedback"][::-1]
    return {"cases": cases, "earlier": cases[-1]["position"] if len(cases) == VERDICTS else None}


async def _recalls(visit: Visit, item_id: str) -> Context:
    before = visit.number("before", 0) or None
    looks = visit.one_of("looks", ("1",), "")
    recalls, others = await asyncio.gather(
        visit.ledger.recalls.of(item_id, limit=RECALLS, before=before, counts=not looks),
        visit.ledger.recalls.of(item_id, limit=1, counts=bool(looks)),
    )
    return {"recalls": recalls, "looks": looks, "others": others["total"]}


async def _nothing_more(_: Visit, __: str) -> Context:
    return {}


async def _lineage(visit: Visit, whole: WholeItem) -> Context:
    item_id = whole["id"]
    if not is_item(item_id):
        return {"lineage": None}  # the id reads as a reference to something else
    address = item_page(item_id, show="lineage")
    shown = await lineage_of(visit.ledger, item_id, whole["task"], address, visit.words)
    return {"lineage": shown, "relations": RELATIONS}


_PARTS: Mapping[str, Callable[[Visit, str], Awaitable[Context]]] = {
    "now": _now,
    "versions": _versions,
    "verdicts": _verdicts,
    "recalls": _recalls,
    "lineage": _nothing_more,
    "access": _nothing_more,
    "revise": _nothing_more,
}
"""The parts of the page by name."""


async def looked_up(_: Site, visit: Visit) -> Response:
    """The item whose id is given, or what is known."""
    item_id = visit.text("id")
    return RedirectResponse(item_page(item_id) if item_id else f"{HOME}/knowledge", 303, headers=OF_A_PAGE)


PAGES = (Page(f"{HOME}/items", looked_up), Page(f"{HOME}/items/{{id}}", item))
