"""Undoing a change without what came after it: the form carries the version that the change left behind."""

from __future__ import annotations

from producers.web.visit import Visit


async def version_now(visit: Visit, item_id: str) -> str:
    """The `of_version` of a form that undoes what was just done to an item, and nothing that came after it."""
    return str((await visit.ledger.get(item_id))["version"])


async def changed_since(visit: Visit, item_id: str) -> bool:
    """Whether the form of the visit undoes a change of an item that was changed again. Raises InvalidPayload."""
    if not visit.said("of_version"):
        return False
    return (await visit.ledger.get(item_id))["version"] != visit.said_number("of_version")
