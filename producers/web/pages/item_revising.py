"""Revising an item by a form. Where somebody was faster, both texts are shown, and the person decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import Response

from kledger.answers.knowledge import WholeItem
from kledger.contract.errors import (
    IllegalScope,
    InvalidPayload,
    LedgerError,
    PayloadTooLarge,
    UnknownKnowledge,
    VersionConflict,
)
from producers.web.addresses import DOTS, HOME
from producers.web.differences import Part, beside, differences
from producers.web.item.form import TEXTS, Written, filled, stated_anew, written
from producers.web.once import fresh, key_of
from producers.web.pages.item_changes import back_again
from producers.web.rendering import back_to, item_page, page
from producers.web.sessions import Notice
from producers.web.site import Site, change
from producers.web.visit import Visit

_TO_BE_MENDED = (InvalidPayload, IllegalScope, PayloadTooLarge)
"""Errors after which the person has the form again, with what they wrote."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A field in which what the person wrote and what the item says by now differ."""

    field: str
    parts: list[Part]


async def revise(_: Site, visit: Visit) -> Response:
    """State the fields anew that the person changed."""
    item_id, form = visit.part("id"), written(visit)
    now = await visit.ledger.get(item_id)
    try:
        stated = stated_anew(form, now)
        if not stated:
            visit.notify(visit.words("It says so already: nothing was changed."))
            return back_to(visit, item_page(item_id))
        if now["version"] != form.version:
            return await _both(visit, form, now)
        await visit.ledger.revise(
            item_id,
            **stated,
            expected_version=form.version,
            reason=form.reason or None,
            idempotency_key=key_of(visit),
        )
    except VersionConflict:
        return await _both(visit, form, await visit.ledger.get(item_id))
    except _TO_BE_MENDED as error:
        return _again(visit, form, now, 422, [], error)
    try:
        why = await visit.ledger.why_visible(item_id)
    except UnknownKnowledge:  # it was given to others
        visit.notify(visit.words("Revised. You do not see it any more: it belongs to others now."))
        return back_to(visit, f"{HOME}/knowledge")
    undo = item_page(item_id, "revert") if why["may_change"]["you"] in ("owner", "operator") else None
    fields = back_again(form.version, form.version + 1) if undo else {}
    visit.session.tell(Notice(visit.words("Revised."), undo, fields))
    return back_to(visit, item_page(item_id))


async def _both(visit: Visit, form: Written, now: WholeItem) -> Response:
    """What the person wrote beside what the item says by now; sent again, it is of the version that was shown."""
    there = filled(now).texts
    apart = await beside(lambda: _apart(there, form.texts))
    return _again(visit, Written(form.texts, now["version"], form.reason), now, 409, apart, None)


def _apart(there: Mapping[str, str], mine: Mapping[str, str]) -> list[Apart]:
    return [
        Apart(name, differences(there[name], mine[name]))
        for name in TEXTS
        if name in mine and mine[name] != there[name]
    ]


def _again(
    visit: Visit, form: Written, now: WholeItem, code: int, apart: list[Apart], error: LedgerError | None
) -> Response:
    beside = {"id": now["id"]} if now["id"] in DOTS else {}
    texts = {**filled(now).texts, **form.texts}
    return page(
        visit,
        "item_again.html",
        code,
        item=now,
        form=Written(texts, form.version, form.reason),
        apart=apart,
        error=error,
        once=fresh(),
        beside=beside,
    )


PAGES = (change(f"{HOME}/items/{{id}}/revise", revise),)
