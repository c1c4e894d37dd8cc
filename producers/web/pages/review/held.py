"""Held statements: what was said again although a person had retired or corrected it; it is released or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from kledger.answers.knowledge import WholeItem
from kledger.answers.memory import HeldStatement
from kledger.contract.errors import InvalidPayload
from producers.web.differences import Part, beside, differences
from producers.web.pages.review.items import items_of, titles_of
from producers.web.pages.review.tab import REVIEW, Tab, decided, offset, reason
from producers.web.site import Site, change
from producers.web.visit import Visit

PER_PAGE = 10


@dataclass(frozen=True, slots=True)
class Row:
    """A held statement, the item that said it once, and what the statement says otherwise than the item now."""

    held: HeldStatement
    item: WholeItem | None
    parts: list[Part]


async def shown(visit: Visit) -> Mapping[str, Any]:
    """A page of them."""
    listed = await visit.ledger.held_statements(limit=PER_PAGE, offset=offset(visit))
    items = await items_of(visit, (one["item_id"] for one in listed["results"]))
    rows = await beside(lambda: [_row(one, items.get(one["item_id"])) for one in listed["results"]])
    return {"total": listed["total"], "rows": rows, "size": PER_PAGE, "offset": offset(visit)}


def _row(held: HeldStatement, item: WholeItem | None) -> Row:
    corrected = item is not None and held["cause"] == "corrected"
    return Row(held, item, differences(item["content"], held["content"] or "") if item and corrected else [])


async def decide(_: Site, visit: Visit) -> Response:
    """Release a statement, which saves it, or drop it."""
    words = visit.words
    match visit.said("what"):
        case "release":
            done = await visit.ledger.release_statement(visit.said("id"), reason=reason(visit))
            (task,) = await titles_of(visit, done["knowledge_id"] or "")
            visit.notify(words("The statement is saved: “{task}”.", task=task))
        case "drop":
            await visit.ledger.drop_statement(visit.said("id"), reason=reason(visit))
            visit.notify(words("The statement is dropped."))
        case other:
            raise InvalidPayload(f"{other[:100]!r} is no decision: release or drop", errors=[])
    return decided(visit, "held")


TAB = Tab("held", "Held statements", shown, (change(f"{REVIEW}/held", decide),))
