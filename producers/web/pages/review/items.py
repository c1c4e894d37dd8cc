"""The items that decisions are about, as the person may read them now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from kledger.answers.knowledge import WholeItem
from kledger.contract.errors import LedgerError
from producers.web.rendering import short
from producers.web.visit import Visit

_TITLE = 80
MOST = 40
"""Items that one page asks for."""


async def items_of(visit: Visit, ids: Iterable[str | None]) -> Mapping[str, WholeItem]:
    """These items by id, without those that are not there, or not for this person."""
    wanted = list(dict.fromkeys(id for id in ids if id))[:MOST]
    found = await asyncio.gather(*(_item(visit, id) for id in wanted))
    return {id: item for id, item in zip(wanted, found, strict=True) if item is not None}


async def titles_of(visit: Visit, *ids: str) -> list[str]:
    """What items are about, in short, for a notice; the id of one that cannot be read."""
    items = await items_of(visit, ids)
    return [short(items[id]["task"], _TITLE) if id in items else id for id in ids]


async def _item(visit: Visit, id: str) -> WholeItem | None:
    try:
        return await visit.ledger.get(id)
    except LedgerError as error:
        if error.code in ("unknown_knowledge", "erased", "forbidden", "not_owner"):
            return None
        raise
