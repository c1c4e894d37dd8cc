"""What an answer without items says of its filters: a word that nothing has may be a slip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from producers.operations.desk import Desk
from projections.overview import unmatched as view
from projections.views.knowledge.listing import Wanted


async def with_unmatched(
    desk: Desk,
    caller: Caller,
    wanted: Wanted,
    answer: JsonObject,
    then: int | None,
    moment: datetime,
    kinds: Sequence[str] = (),
) -> JsonObject:
    """The answer, with `unmatched` where it is empty and a filter has words that no item of the caller's has.

    They are looked for in an answer without items alone, and cost a search with items nothing.
    """
    if not (wanted.types or wanted.scopes or wanted.owner or wanted.tags or wanted.created_by or kinds):
        return answer
    told = await desk.view.ask(view.unmatched, desk.org, caller, wanted, then, moment, kinds)
    return answer | ({"unmatched": told} if told else {})
