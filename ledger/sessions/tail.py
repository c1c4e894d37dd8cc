"""The last messages of sessions in memory, each session's as of its head, with what was counted of them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ledger.sessions.head import Head
from ledger.sessions.subjects import SessionKey
from ledger.sessions.tokens import Counter
from ledger.sessions.words import Message

MOST_REMEMBERED = 64 * 1024 * 1024
"""Bytes of words in memory, of all sessions together."""
MOST_COSTS = 2_000


@dataclass(slots=True)
class Tail:
    """The last messages of a session as of a head; `size` is their bytes as stored."""

    head: Head
    messages: list[Message]
    size: int
    sizes: dict[str, int] = field(default_factory=dict)
    older: dict[str, Message] = field(default_factory=dict)
    """Messages before these that are looked at again and again: system prompts, the user's last one."""
    costs: dict[tuple[str, int, int], int] = field(default_factory=dict)
    """Tokens of texts, by the name of the counter, and the text's length and hash."""

    def counting(self, counter: Counter) -> Callable[[str], int]:
        """The counter, with the counts so far remembered."""

        def count(text: str) -> int:
            key = (counter.name, len(text), hash(text))
            if (cost := self.costs.get(key)) is None:
                if len(self.costs) >= MOST_COSTS:
                    self.costs.clear()
                cost = self.costs[key] = counter(text)
            return cost

        return count

    def held(self) -> int:
        """Bytes of words in memory."""
        return self.size + sum(message.size for message in self.older.values())


Tails: TypeAlias = OrderedDict[SessionKey, Tail]
"""Those of the sessions in use, the one that was used last at the end."""


def remember(tails: Tails, key: SessionKey, tail: Tail) -> None:
    """Keep the tail of a session, and leave out what was not used for long where all have more than MOST_REMEMBERED."""
    tails.pop(key, None)
    tails[key] = tail
    while sum(each.held() for each in tails.values()) > MOST_REMEMBERED and len(tails) > 1:
        tails.popitem(last=False)


def extend(
    tails: Tails,
    key: SessionKey,
    before: Head,
    head: Head,
    messages: Sequence[Message],
    sizes: Sequence[int],
    most: int,
) -> None:
    """Add new messages to the tail of a session, where that is as of the head before; it keeps `most` of them."""
    tail = tails.get(key)
    if tail is None and not before.count:
        tail = Tail(before, [], 0)
    if tail is None or tail.head.position != before.position:
        tails.pop(key, None)
        return
    tail.head = head
    # Where each is in the stream is looked up when it is asked for.
    tail.messages += messages
    for message, size in zip(messages, sizes, strict=True):
        tail.sizes[message.id] = size
        tail.size += size
    for old in tail.messages[:-most]:
        tail.size -= tail.sizes.pop(old.id)
    del tail.messages[:-most]
    remember(tails, key, tail)
