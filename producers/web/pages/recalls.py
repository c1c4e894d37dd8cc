"""Recalls: what an agent was shown, word for word as it was served, and what changed of it since."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from starlette.responses import Response

from kledger.answers.recalls import ServedItem
from kledger.client.clients import AsyncLedgerClient
from kledger.contract.errors import LedgerError
from producers.web.addresses import HOME
from producers.web.differences import Part, beside, differences
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

PAGE = 50
MOST_COMPARED = 8
"""Items of one recall that are compared with what they say now; of the others it is said that they changed."""


async def recalls(_: Site, visit: Visit) -> Response:
    """The caller's recalls, the latest first; `looks`: the looks at pages in place of them."""
    looks = visit.one_of("looks", ("1",), "")
    listed, others = await asyncio.gather(
        visit.ledger.recalls.list(limit=PAGE, before=visit.number("before", 0) or None, counts=not looks),
        visit.ledger.recalls.list(limit=1, counts=bool(looks)),
    )
    return page(visit, "recalls.html", recalls=listed, looks=looks, others=others["total"])


async def recall(_: Site, visit: Visit) -> Response:
    """One recall."""
    shown = await visit.ledger.recalls.get(visit.part("id"))
    changed = [each for each in shown["results"] if each["version_now"] != each["item_version"]]
    return page(
        visit, "recall.html", recall=shown, since=await _since(visit.ledger, changed[:MOST_COMPARED]), most=20_000
    )


async def _since(ledger: AsyncLedgerClient, changed: Sequence[ServedItem]) -> Mapping[str, list[Part]]:
    """What these items say now, compared with what was served, by id."""
    texts = await asyncio.gather(*(_content(ledger, each["id"]) for each in changed))
    pairs = [(each, text) for each, text in zip(changed, texts, strict=True) if text not in (None, each["content"])]
    compared = await beside(lambda: [differences(each["content"], text or "") for each, text in pairs])
    return {each["id"]: parts for (each, _), parts in zip(pairs, compared, strict=True)}


async def _content(ledger: AsyncLedgerClient, item_id: str) -> str | None:
    try:
        return (await ledger.get(item_id))["content"]
    except LedgerError:  # it was erased or withdrawn meanwhile
        return None


PAGES = (Page(f"{HOME}/recalls", recalls), Page(f"{HOME}/recalls/{{id}}", recall))
