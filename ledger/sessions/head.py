"""Head of a session: what it is by now, in the one record that every append to it replaces.

An append names the head that it builds on, so of two nodes that append at once one has to look again: message numbers
have no gaps, and count what is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Literal

import orjson

from ledger.sessions.words import Message

MOST_PROMPTS = 64
"""So many of the last system prompts are known by id without looking for them."""
SYSTEM = ("system", "developer")

State = Literal["open", "closing", "closed"]


@dataclass(frozen=True, slots=True)
class Head:
    """What a session is; `position` is that of the record in the stream of words.

    `opened` is the log position of its last opening, `begun` that of the first one since it had no words: what was
    stored beside words that were removed has another one. `turns` counts messages of the user, `prompts` are the ids
    of its system prompts, `last_user` is that of the user's last message; a scratchpad of before `fresh_us` has ended.
    Times are microseconds since 1970. Extraction was asked for the first `asked` messages, with `asked_turns` of the
    user. `agent` appended last.
    """

    opened: int
    begun: int = 0
    state: State = "open"
    count: int = 0
    turns: int = 0
    last_us: int = 0
    prompts: tuple[str, ...] = ()
    last_user: str | None = None
    fresh_us: int = 0
    asked: int = 0
    asked_turns: int = 0
    agent: str | None = None
    position: int = 0

    def with_messages(self, messages: Iterable[Message]) -> Head:
        """The head after these messages."""
        head = self
        for message in messages:
            head = replace(
                head,
                count=message.number,
                turns=head.turns + (message.role == "user"),
                last_us=max(head.last_us, message.at_us),
                prompts=(*head.prompts, message.id)[-MOST_PROMPTS:] if message.role in SYSTEM else head.prompts,
                last_user=message.id if message.role == "user" else head.last_user,
            )
        return head

    def written(self) -> bytes:
        """Serialize."""
        return orjson.dumps({"v": 1, **{name: value for name, value in asdict(self).items() if name != "position"}})


def head_read(body: bytes, position: int) -> Head:
    """Parse the output of `written`; unknown fields, of a later version, are left out."""
    document = orjson.loads(body)
    known = {name: document[name] for name in Head.__dataclass_fields__ if name in document}
    return Head(**{**known, "prompts": tuple(document.get("prompts", ())), "position": position})
