"""Options of which a command needs one: told beside all else that is missing, and not one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_NEEDS = "needs_one_of"


def one_of(said: str, *names: str) -> Callable[[F], F]:
    """Mark a command that needs one of these parameters; `said` is what is missing where none is given."""

    def marked(function: F) -> F:
        function.__dict__[_NEEDS] = (said, names)
        return function

    return marked


def missing_of(command: Any, value_of: Callable[[Any], Any]) -> Iterator[str]:
    """What the command needs one of, where none is given. `value_of` tells what was typed for a parameter, or set."""
    said, names = getattr(command.callback, _NEEDS, ("", ()))
    if names and not any(value_of(each) for each in command.params if each.name in names):
        yield said
