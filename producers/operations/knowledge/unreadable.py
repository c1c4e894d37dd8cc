"""Warnings of a save: resources that readers of the item cannot read."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kledger.answers.parts import Warned
from kledger.contract.errors import ViewBehind
from kledger.contract.scopes import PUBLIC, Caller
from producers.operations.desk import Desk, reach_head
from projections.views.resources.ask import readers_of


@dataclass(frozen=True, slots=True)
class Referring:
    """A saved item: the resources that it refers to, and its readers."""

    resource_ids: Sequence[str]
    readers: Sequence[str]


async def warnings(desk: Desk, caller: Caller, items: Mapping[int, Referring]) -> dict[int, list[Warned]]:
    """The warnings of each item: `code`, `resource_id`, `readers` that cannot read it, and a `message`.

    A resource that the caller may not see counts as missing.
    """
    resource_ids = sorted({name for item in items.values() for name in item.resource_ids})
    if not resource_ids:
        return {}
    known = await desk.view.ask(readers_of, desk.org, caller, resource_ids)
    if len(known) < len(resource_ids):
        with contextlib.suppress(ViewBehind):  # it may have been saved a moment ago; the item is saved in any case
            await reach_head(desk)
        known = await desk.view.ask(readers_of, desk.org, caller, resource_ids)
    by_item = {}
    for number, item in items.items():
        results = [_warning(name, item.readers, known.get(name)) for name in dict.fromkeys(item.resource_ids)]
        if present := [each for each in results if each is not None]:
            by_item[number] = present
    return by_item


def _warning(resource_id: str, readers: Sequence[str], able: Sequence[str] | None) -> Warned | None:
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
    if not left:
        return None
    return Warned(code="unreadable_resource", resource_id=resource_id, readers=left, message=message)
