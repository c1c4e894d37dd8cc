"""What a session says about a recall: what its context holds already, and what of its older words answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kledger.contract.errors import UnknownSession
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.sessions.words import Message
from producers.operations.desk import Desk
from producers.operations.sessions.whose import found, store_of
from projections.search.match import covered_by_each, passages_of, weighed
from projections.search.ranking import USUAL_QUALITY
from projections.search.rerank import MAIN, factors
from projections.views.times import rfc3339

OLDER = 500
"""So many messages before the ones that a context shows in full are looked through for a follow-up."""
LEAST_SAID = 12
"""Characters below which the words of an item in a message say nothing about it."""
MOST_OLDER = 3
"""Results of the session's own words."""


@dataclass(slots=True)
class InSession:
    """The session of a recall: ids and words of the messages that its context shows, and older ones that answer."""

    session_id: str | None = None
    ids: frozenset[str] = frozenset()
    words: str = ""
    older: list[tuple[float, Message]] = field(default_factory=list)
    """Older messages that answer, each behind its match, the best one first."""
    left_out: int = 0
    """How many items were left out, as the context holds them."""

    def working(self, least: float, unit: float) -> list[JsonObject]:
        """The older messages that match at least so much, as results of the layer `working`.

        `unit` is the relevance that a match of 1 has in the answer, where that of items is relative to their best.
        """
        return [_result(match, message, match * unit) for match, message in self.older if match >= least]

    def holds(self, item: JsonObject) -> bool:
        """Whether the context holds an item: the messages that it came from, or its very words."""
        if self.session_id is None:
            return False
        source, tags = item["source"], item["tags"]
        of_messages = tags.get("message_ids") if isinstance(tags, dict) else None
        stated = of_messages if isinstance(of_messages, list) else [source.get("message_id")]
        # Ids of messages are a session's own: others may have the same.
        from_here = self.session_id in (source.get("trace_id"), item.get("memory", {}).get("session"))
        named = [each for each in stated if isinstance(each, str)]
        said = _words(item["content"])
        held = (from_here and bool(named) and self.ids.issuperset(named)) or (
            len(said) >= LEAST_SAID and said in self.words
        )
        self.left_out += held
        return held


async def of_session(desk: Desk, caller: Caller, session_id: str, message: str) -> InSession:
    """What is known of the caller's session; nothing where the caller has none of this id. Raises BrokerUnavailable."""
    try:
        session = await found(desk, caller, session_id)
    except UnknownSession:
        return InSession()
    store = store_of(desk)
    tail = await store.tail(session.key, session.head)
    shown = [each for each in tail.messages if not each.erased]
    older: Sequence[Message] = ()
    if session.head.count > len(tail.messages):
        before = await store.last(session.key, session.head, OLDER + len(tail.messages))
        there = {each.id for each in tail.messages}
        older = [each for each in before if each.id not in there and not each.erased]
    return InSession(
        session_id,
        frozenset(each.id for each in shown),
        "\n".join(_words(each.content) for each in shown),
        _answering(older, message),
    )


def _answering(messages: Sequence[Message], message: str) -> list[tuple[float, Message]]:
    """The older messages that match best, with their match."""
    read = passages_of((each.role, each.content) for each in messages)
    matched = zip(covered_by_each(weighed(message), read), messages, strict=True)
    best = sorted(matched, key=lambda pair: (-pair[0], -pair[1].number))[:MOST_OLDER]
    return [(match, each) for match, each in best if match > 0]


def _result(match: float, message: Message, relevance: float) -> JsonObject:
    why = factors(
        relevance=relevance, freshness=1.0, layer="working", intent=MAIN, confidence=0.5, quality=USUAL_QUALITY
    )
    return {
        "id": message.id,
        "layer": "working",
        "role": message.role,
        "number": message.number,
        "task": message.role,
        "content": message.content,
        "updated_at": rfc3339(message.at_us),
        "match": round(match, 4),
        "relevance": round(relevance, 6),
        "why": why.shown(),
    }


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()
