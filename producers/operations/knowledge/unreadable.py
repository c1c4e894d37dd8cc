"""Who reads an item and not the resources that it refers to? A save says so, and is kept (mission X2)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kledger.contract.errors import ViewBehind
from kledger.contract.scopes import PUBLIC, Caller
from ledger.event import JsonObject
from producers.operations.desk import Desk, reach_head
from projections.views.resources.ask import readers_of

CODE = "unreadable_resource"


@dataclass(frozen=True, slots=True)
class Referring:
    """An item as it was saved: what it refers to, and who reads it."""

    resource_ids: Sequence[str]
    readers: Sequence[str]


async def warnings(desk: Desk, caller: Caller, items: Mapping[int, Referring]) -> dict[int, list[JsonObject]]:
    """What there is to say of each item: `code`, `resource_id`, `readers` that do not read it, and a `message`.

    A resource that the caller may not see is as one that is not there.
    """
    named = sorted({name for item in items.values() for name in item.resource_ids})
    if not named:
        return {}
    known = await desk.view.ask(readers_of, desk.org, caller, named)
    if len(known) < len(named):
        with contextlib.suppress(ViewBehind):  # it was saved a moment ago, perhaps; the item is kept in any case
            await reach_head(desk)
        known = await desk.view.ask(readers_of, desk.org, caller, named)
    found = {}
    for number, item in items.items():
        told = [_warning(name, item.readers, known.get(name)) for name in dict.fromkeys(item.resource_ids)]
        if kept := [each for each in told if each is not None]:
            found[number] = kept
    return found


def _warning(resource_id: str, readers: Sequence[str], able: Sequence[str] | None) -> JsonObject | None:
    if able is None:
        left = list(readers)
        message = (
            f"there is no resource {resource_id[:200]!r} that you may see: save it, or ask its owner for it, so that "
            "who reads the item finds it"
        )
    else:
        left = [] if PUBLIC in able else [reader for reader in readers if reader not in able]
        message = (
            f"{', '.join(left[:10])} may read the item and not the resource {resource_id[:200]!r}: save the resource "
            "with scopes that name them"
        )
    return {"code": CODE, "resource_id": resource_id, "readers": left, "message": message} if left else None
