"""What a list of tools says of a function beside its docstring and arguments: its title, and the effect of a call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def tool(
    title: str, *, reads: bool = False, hides: bool = False, repeatable: bool = False, answers: Any = None
) -> Callable[[F], F]:
    """Give a function its title and hints (`Hints`). `answers`: the node's answer, where the function adds to it."""

    def hinted(function: F) -> F:
        function.__dict__["hints"] = Hints(title, answers, reads, hides, repeatable)
        return function

    return hinted


def hints_of(function: Callable[..., Any]) -> Hints:
    """The hints that `tool` gave a function. Raises KeyError where it gave none."""
    hints: Hints = function.__dict__["hints"]
    return hints


@dataclass(frozen=True, slots=True)
class Hints:
    """The title of a tool, and the effect of a call."""

    title: str
    answers: Any
    reads: bool
    """It changes nothing."""
    hides: bool
    """It removes items from recall (reversibly): a client should ask its user first."""
    repeatable: bool
    """Idempotent for the same arguments."""
