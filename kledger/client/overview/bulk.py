"""Requests about bulks: the same change of many items, shown and reverted later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import KNOWLEDGE
from kledger.client.wire import Wire, segment
from kledger.contract.words import BulkAction

if TYPE_CHECKING:
    from kledger.answers.bulk import Bulk, RevertedBulk, ShownBulk

BULK = f"{KNOWLEDGE}/bulk"


async def bulk(
    wire: Wire,
    action: BulkAction,
    ids: Sequence[str],
    *,
    dry_run: bool = True,
    reason: str | None = None,
    readers: Sequence[str] | None = None,
    writers: Sequence[str] | None = None,
    idempotency_key: str | None = None,
) -> Bulk:
    """Retire, restore or share up to 1000 items, each judged alone. A dry run, the default, says what would become of
    each; `readers` and `writers` are added to the ACL of what is shared. `bulk_id` names it for `revert_bulk`.
    """
    body: dict[str, Any] = {"action": action, "ids": list(ids), "dry_run": dry_run}
    if reason is not None:
        body["reason"] = reason
    body |= {name: list(named) for name, named in (("readers", readers), ("writers", writers)) if named}
    return await wire.write("POST", BULK, body, idempotency_key=idempotency_key)


async def bulk_get(wire: Wire, id: str) -> ShownBulk:
    """What a bulk of the caller's did, and which items still are as it left them. UnknownReference without one."""
    return await wire.read(f"/api/bulks/{segment(id)}")


async def revert_bulk(
    wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None
) -> RevertedBulk:
    """Undo what a bulk of the caller's did, at any time later. An item that was changed since is `refused`, and stays.

    UnknownReference when the caller asked for no such bulk.
    """
    body = {} if reason is None else {"reason": reason}
    return await wire.write("POST", f"/api/bulks/{segment(id)}/revert", body, idempotency_key=idempotency_key)


class BulkEndpoints:
    """One change of many items."""

    bulk = Endpoint(bulk)
    bulk_get = Endpoint(bulk_get)
    revert_bulk = Endpoint(revert_bulk)
