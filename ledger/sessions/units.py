"""Units of a conversation: what may only be shown together. A call and its results are one, any other message too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.sessions.words import Message


@dataclass(slots=True)
class Unit:
    """Messages that stay together, in order."""

    messages: list[Message] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The number of its last message."""
        return self.messages[-1].number

    @property
    def has_results(self) -> bool:
        """Whether a tool's output is in it."""
        return any(message.role == "tool" for message in self.messages)


def calls_of(message: Message) -> set[str]:
    """The ids of the calls that a message makes."""
    calls = message.said.get("tool_calls") or ()
    return {call["id"] for call in calls if isinstance(call, dict) and isinstance(call.get("id"), str)}


def units_of(messages: Sequence[Message]) -> tuple[list[Unit], list[Message]]:
    """The units of messages, in order of their first one; and the results whose call is not among the messages."""
    units: list[Unit] = []
    by_call: dict[str, Unit] = {}
    torn: list[Message] = []
    for message in messages:
        answers = message.said.get("tool_call_id") if message.role == "tool" else None
        if isinstance(answers, str):
            if (unit := by_call.get(answers)) is None:
                torn.append(message)
            else:
                unit.messages.append(message)
            continue
        unit = Unit([message])
        units.append(unit)
        by_call |= dict.fromkeys(calls_of(message), unit)
    return units, torn
