"""Where an option belongs that stands at the wrong place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def place_of(root: Any, context: Any, option: str, typed: Sequence[str]) -> str | None:
    """Where the option belongs; None where no command that was named, nor the root, takes it."""
    at: Any = None if context is None else context.command
    if at is not root and _takes(root, option):
        return f"{option} stands alone, without a command: kledger {option}"
    if not hasattr(at, "commands"):
        return None
    names = [] if at is root else context.command_path.split()[1:]
    found = _named(at, option, typed)
    if found is None and option in _SHARED:
        example = (
            "status" if at is root else next((name for name in at.commands if _takes(at.commands[name], option)), None)
        )
        found = None if example is None else [example]
    if found is None:
        return None
    return f"{option} belongs after the command: kledger {' '.join([*names, *found])} {option} …"


# Every command takes them, so one is named as an example where none was typed.
_SHARED = ("--json", "--url", "--token-file")


def _named(group: Any, option: str, typed: Sequence[str]) -> list[str] | None:
    """The command in the group, as it was named, that takes the option."""
    for number, word in enumerate(typed):
        if word not in group.commands:
            continue
        command = group.commands[word]
        if hasattr(command, "commands"):
            below = _named(command, option, typed[number + 1 :])
            if below is not None:
                return [word, *below]
        elif _takes(command, option):
            return [word]
    return None


def _takes(command: Any, option: str) -> bool:
    return any(option in (*each.opts, *each.secondary_opts) for each in command.params)
