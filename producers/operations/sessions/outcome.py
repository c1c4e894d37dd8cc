"""What came of a session: the items that were saved from its messages, in its trace, or as memories of it."""

from __future__ import annotations

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from producers.operations.desk import ANY, Desk, Freshness, reach
from producers.operations.sessions.reading import messages
from producers.operations.sessions.whose import found
from projections.views.sessions.outcome import MOST_SAVED, saved_in


async def knowledge(
    desk: Desk,
    caller: Caller,
    session_id: str,
    *,
    after: str | None = None,
    limit: int = 100,
    owner: str | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The items that the caller may read and that came of a page of messages, or of the session (SessionKnowledge).

    Raises UnknownSession, ViewBehind, BrokerUnavailable.
    """
    await reach(desk, freshness)
    session = await found(desk, caller, session_id, owner)
    page = await messages(desk, caller, session_id, after=after, limit=limit, owner=owner)
    position = desk.view.position
    said = [each["id"] for each in page["messages"]]
    saved = await desk.view.ask(saved_in, desk.org, caller, session.key.owner, session_id, said)
    shown = saved[:MOST_SAVED]
    more = len(saved) > MOST_SAVED
    return {"session_id": session_id, "results": shown, "count": len(shown), "more": more, "position": position}
