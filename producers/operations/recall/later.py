"""What was said later first, with a look at what became of what was said earlier."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.event import JsonObject
from producers.operations.desk import Desk
from projections.similar.later_first import later_first
from projections.views.knowledge.memories import evidence


async def with_later_first(desk: Desk, results: Sequence[JsonObject], then: int | None = None) -> list[JsonObject]:
    """The results, each earlier statement behind the later one about the same, unless it was upheld since; as of the
    position `then` if one is given.

    The view is asked only where something became of an earlier one.
    """
    supposed = later_first(results)
    touched = [item["id"] for item in supposed if "later" in item and item["updated_at"] != item["created_at"]]
    if not touched:
        return supposed
    known = await desk.view.ask(evidence, desk.org, touched, then)
    return later_first(results, {name: each.upheld for name, each in known.items()})
