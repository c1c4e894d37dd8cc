"""What a person may change, as far as it is known before the node is asked: it decides, and refuses the rest."""

from __future__ import annotations

from kledger.answers.knowledge import Item
from kledger.contract.errors import LedgerError
from producers.web.sessions import Session
from producers.web.visit import Visit


def may_retire(session: Session, item: Item) -> bool:
    """Whether an item is the person's own. Of a token that names nobody it is not known, so that the node is asked."""
    entities = session.caller.entities()
    return not entities or item["owner"] in entities


def may_revise(session: Session, item: Item) -> bool:
    """Whether the person may state an item anew: as its owner, or as whom its ACL lets write."""
    writers = {entry["entity"] for entry in item.get("acl", []) if entry["permission"] == "read_write"}
    return may_retire(session, item) or not writers.isdisjoint(session.caller.entities())


async def coordinates(visit: Visit, project: str) -> bool:
    """Whether the person is a coordinator of a project."""
    try:
        members = (await visit.ledger.project_members(project))["members"]
    except LedgerError:  # no member of it
        return False
    who = set(visit.session.caller.reading_as())
    return any("coordinator" in one["roles"] and one["member"] in who for one in members)
