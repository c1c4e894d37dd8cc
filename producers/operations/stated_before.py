"""Does a save say what was said before, under its id or under its key?"""

from __future__ import annotations

from datetime import datetime

from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared, Source
from ledger.scopes import Caller
from ledger.sealed import ERASED
from producers.operations.desk import Desk
from producers.publish import mismatch
from projections.knowledge import ask
from projections.knowledge.ask import rfc3339

FILLED_IN = ("agent_id", "timestamp")
"""What a save by an agent has filled in of its source where it does not state it: two tries would differ in it."""


def signed(fact: KnowledgeSaved, caller: Caller, moment: datetime) -> KnowledgeSaved:
    """A save by an agent, whose source says which agent and when; that of anybody else as it is."""
    if caller.agent is None:
        return fact
    filled = {"agent_id": caller.agent, "timestamp": rfc3339(int(moment.timestamp() * 1_000_000))}
    missing = {name: filled[name] for name in FILLED_IN if getattr(fact.source, name) is None}
    return fact.model_copy(update={"source": fact.source.model_copy(update=missing)}) if missing else fact


def same(fact: KnowledgeSaved, shared: KnowledgeShared | None, taken: ask.SavedStatement) -> bool:
    """True when a save states what the item said first, and with an ACL, what it was shared with at once.

    `fact` is as it was stated: what it leaves to be filled in is not compared.
    """
    left = {name: None for name in FILLED_IN if getattr(fact.source, name) is None}
    said = taken.statement
    if left:
        said = tuple(each.model_copy(update=left) if isinstance(each, Source) else each for each in said)
    if taken.owner != fact.owner or said != ask.statement_of(fact):
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
