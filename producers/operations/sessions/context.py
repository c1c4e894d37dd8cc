"""What of a session fits a model's window, as `ledger/sessions/context.py` cuts it."""

from __future__ import annotations

from collections.abc import Sequence

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.sessions.context import Context, Conversation, context_of
from ledger.sessions.store import SessionStore
from ledger.sessions.summaries import in_order
from ledger.sessions.tokens import counter_for
from producers.operations.desk import Desk
from producers.operations.sessions.extracting import ask_when_compacted, is_due_for_compaction
from producers.operations.sessions.summarising import Wanted, ask_summaries, may_summarise, summaries_wanted
from producers.operations.sessions.whose import Found, found, store_of


async def context(
    desk: Desk, caller: Caller, session_id: str, *, max_tokens: int, model: str | None = None, owner: str | None = None
) -> JsonObject:
    """What of the session fits a window of `max_tokens` (SessionContext). Raises UnknownSession, BrokerUnavailable."""
    session = await found(desk, caller, session_id, owner)
    store = store_of(desk)
    counter = counter_for(model)
    tail = await store.tail(session.key, session.head)
    conversation = await conversation_of(store, session)
    budget = int(max_tokens * store.settings.share)
    cut = context_of(conversation, budget, tail.counting(counter), store.settings)
    able = may_summarise(desk)
    wanted = summaries_wanted(conversation, cut, store.settings) if cut.wanted >= 2 else []
    if wanted and able:
        store.spawn(ask_summaries(desk, session, wanted))
    if is_due_for_compaction(desk, session.head, cut):
        store.spawn(ask_when_compacted(desk, session.key, cut))
    return {
        "session_id": session_id,
        "budget": budget,
        "used": cut.used,
        "counter": counter.name,
        "level": cut.level,
        "messages": cut.messages,
        "summaries": [each.shown() for each in cut.summaries],
        "overview": cut.overview.shown() if cut.overview is not None else None,
        "left_out": cut.left_out,
        "pending": _pending(cut, wanted, able),
    }


async def conversation_of(store: SessionStore, session: Found) -> Conversation:
    """What a context is made of. Raises BrokerUnavailable."""
    head = session.head
    tail = await store.tail(session.key, head)
    ids = [*head.prompts, *([head.last_user] if head.last_user is not None else [])]
    known = await store.older(session.key, tail, ids)
    segments, overview = in_order(await store.summaries(session.key, head))
    return Conversation(
        messages=list(tail.messages),
        total=head.count,
        prompts=[known[each] for each in head.prompts if each in known],
        last_user=known.get(head.last_user) if head.last_user is not None else None,
        summaries=segments,
        overview=overview,
    )


def _pending(cut: Context, wanted: Sequence[Wanted], able: bool) -> JsonObject | None:
    """The level that the conversation asks for, and why it is not applied, or not to all that is older."""
    lacks_segments = any(level == 2 for level, _, _ in wanted)
    if cut.level >= cut.wanted and not lacks_segments:
        return None
    if able and cut.level >= cut.wanted:
        reason = "a model sums up more of what is older; until then the window holds the budget"
    elif able and not wanted:
        reason = "what is older than the messages that stay is less than a segment: the window holds the budget"
    elif able:
        reason = "a model sums up what is older; until then the level below and the window hold the budget"
    else:
        reason = "no model sums up what is older: level 1 and the window hold the budget; set KLEDGER_MODEL at the node"
    return {"level": cut.wanted, "reason": reason}
