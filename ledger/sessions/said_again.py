"""Messages that are said again: an id stands for its words, so the same ones change nothing, and others are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from kledger.contract.errors import MessageExists
from ledger.event import JsonObject
from ledger.sessions.words import Message

_ABOUT = frozenset({"id", "tokens", "created_at"})
"""What is no part of what is said: a sender may count, and date, anew what it sends again."""


def unknown(said: Sequence[JsonObject], stored: Mapping[str, Message]) -> list[JsonObject]:
    """Those of the messages whose id is not among the stored ones. Raises MessageExists where one has other words."""
    for document in said:
        known = stored.get(document["id"])
        if known is not None and not known.erased and _words(document) != _words(known.said):
            raise MessageExists(
                f"the session has the message {known.id[:80]!r} already, as its number {known.number}, with other "
                "words: nothing of this request was appended. Give what is new an id of its own, or send the same "
                "words"
            )
    return [document for document in said if document["id"] not in stored]


def _words(document: JsonObject) -> object:
    """What a message says, as JSON reads it, however it was kept."""
    said = {name: value for name, value in document.items() if name not in _ABOUT and value not in (None, "", [])}
    return orjson.loads(orjson.dumps(said))
