"""Summaries of a session's segments, and the overview of all: what stands for what a window has no room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from ledger.event import JsonObject

_EACH = 4
MOST_BEHIND = 200
"""Messages before the window that are summed up: a model's work that nobody asked for has a bound."""


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
    messages: tuple[str, ...] = ()
    """The ids of the messages; of an overview those of the first and the last."""
    usage: JsonObject | None = None

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

    def document(self) -> JsonObject:
        """As it is stored."""
        return {name: value for name, value in asdict(self).items() if name != "id"}


def summary_id(level: int, first: int, last: int) -> str:
    """The id of the summary of these messages: there is one."""
    return f"summary-{level}-{first}-{last}"


def summary_read(record_id: str, document: JsonObject) -> Summary:
    """Parse the output of `document`."""
    decisions, todos, agreements, messages = (
        tuple(document.get(name, ())) for name in ("decisions", "todos", "agreements", "messages")
    )
    return Summary(
        id=record_id,
        level=document["level"],
        first_number=document["first_number"],
        last_number=document["last_number"],
        text=document["text"],
        decisions=decisions,
        todos=todos,
        agreements=agreements,
        messages=messages,
        usage=document.get("usage"),
    )


def in_order(summed: Iterable[Summary]) -> tuple[list[Summary], Summary | None]:
    """The summaries of segments by what they stand for, and the overview that stands for the most."""
    each = list(summed)
    segments = sorted((one for one in each if one.level == 2), key=lambda one: one.first_number)
    return segments, max((one for one in each if one.level == 3), key=lambda one: one.last_number, default=None)


def segments_wanted(count: int, kept: int, size: int, first_seen: int, there: set[int]) -> list[tuple[int, int]]:
    """The segments that have no summary (`there`: their first numbers): first and last number of each.

    First those that reach into the window, which begins with `first_seen`, oldest first; then what is older, newest
    first, as far as MOST_BEHIND messages back: what the window has no room for is told in short, and of a long
    conversation that was imported as a whole the end.
    """
    ends = range(size, max(0, count - kept) + 1, size)
    wanted = [(end - size + 1, end) for end in ends if end - size + 1 not in there]
    behind = [(first, last) for first, last in wanted if first_seen - MOST_BEHIND <= first and last < first_seen]
    return [*((first, last) for first, last in wanted if last >= first_seen), *reversed(behind)]
