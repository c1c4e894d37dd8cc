"""Does a save say what was said before, under its id or under its key?"""

from __future__ import annotations

from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared
from ledger.sealed import ERASED
from producers.operations.desk import Desk
from producers.publish import mismatch
from projections.knowledge import ask


def same(fact: KnowledgeSaved, shared: KnowledgeShared | None, taken: ask.SavedStatement) -> bool:
    """True when a save states what the item said first, and with an ACL, what it was shared with at once."""
    if taken.owner != fact.owner or taken.statement != ask.statement_of(fact):
        return False
    return shared is None or taken.acl == ask.acl_of(shared.readers(), shared.writers())


async def refuse_another(
    desk: Desk, item_id: str, event_id: str, fact: KnowledgeSaved, shared: KnowledgeShared | None
) -> None:
    """Raise IdempotencyMismatch when the save that was kept under this event's key said something else.

    What was erased with its person says nothing that could be compared.
    """
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [item_id])).get(item_id)
    if taken is None or taken.event_id != event_id or taken.statement[2] == ERASED:
        return
    if not same(fact, shared, taken):
        raise mismatch()
