"""The resources that keep the original of a document: judged, saved, and retired.

The event of a document is anybody's word who publishes by hand. Of the resources that it names, those are the
original's that have an id of an original of this document and its owner. The rest is left as it is. What is retired is
retired with the rights of the document's owner, whoever asks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence

from kledger.contract.documents import original_id
from kledger.contract.errors import IllegalState, SubjectForgotten
from kledger.contract.scopes import Caller
from kledger.requests.resources import ResourceRequest
from ledger.event import Lineage
from producers.operations.desk import Desk
from producers.operations.resources import changes as resources
from producers.operations.resources.stating import addressed, resource_now
from projections.views.resources import ask


async def judge_original(desk: Desk, caller: Caller, parts: Sequence[ResourceRequest]) -> None:
    """Judge the save of every part, before anything is saved. Raises NotOwner, Forbidden, ViewBehind."""
    for part in parts:
        now, _ = await resource_now(desk, caller, part.id)
        addressed(caller, part, now)


async def keep_original(desk: Desk, caller: Caller, lineage: Lineage, parts: Sequence[ResourceRequest]) -> None:
    """Save the parts of the original; one that is there already makes no event. Raises as `resources.changes.save`."""
    for part in parts:
        await resources.save(desk, caller, lineage, part)


async def retire_original(
    desk: Desk, lineage: Lineage, document_id: str, owner: str, resource_ids: Collection[str], reason: str
) -> None:
    """Retire those of these resources that keep an original of the document. Raises BrokerUnavailable, ViewBehind."""
    as_owner = Caller.seeing([owner])
    for resource_id in dict.fromkeys(resource_ids):
        if not _keeps(document_id, resource_id):
            continue
        standing = await desk.view.ask(ask.standing, desk.org, as_owner, resource_id)
        if standing is None or standing.owner != owner or standing.status != "active":
            continue
        with contextlib.suppress(IllegalState):  # its owner retired it since
            try:
                await resources.retire(desk, as_owner, lineage, resource_id, reason)
            except SubjectForgotten:  # a reason is a text of whoever it was
                await resources.retire(desk, as_owner, lineage, resource_id)


def _keeps(document_id: str, resource_id: str) -> bool:
    """Whether this is the id of an original of the document, or of a part of one."""
    part = resource_id.rpartition("/")[2]
    return resource_id == original_id(document_id) or (
        part.isdecimal() and int(part) > 1 and resource_id == original_id(document_id, int(part))
    )
