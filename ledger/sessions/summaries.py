"""Summaries of a session's segments, and the overview of all: what stands for what a window has no room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ledger.event import JsonObject

_EACH = 4


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of the messages `first_number` to `last_number`; of an overview also its parts as lists."""

    id: str
    level: int
    first_number: int
    last_number: int
    text: str
    decisions: tuple[str, ...] = ()
    todos: tuple[str, ...] = ()
    agreements: tuple[str, ...] = ()

    def numbers(self) -> set[int]:
        """The messages that it stands for."""
        return set(range(self.first_number, self.last_number + 1))

    def cost(self, count: Callable[[str], int]) -> int:
        """Tokens of it."""
        return count("\n".join((self.text, *self.decisions, *self.todos, *self.agreements))) + _EACH

    def shown(self) -> JsonObject:
        """As an answer has it."""
        about: JsonObject = {
            "id": self.id,
            "first": self.first_number,
            "last": self.last_number,
            "content": self.text,
        }
        if self.level == 2:
            return about
        lists = {"decisions": self.decisions, "todos": self.todos, "agreements": self.agreements}
        return about | {name: list(values) for name, values in lists.items()}
