"""What stands in the help for a value: WHEN, SECONDS, N, one of a few words; never the name of a type of Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

_OF_OPTION = {
    **dict.fromkeys(("as-of", "since", "until", "to", "happened-at"), "WHEN"),
    **dict.fromkeys(("wait", "lifetime"), "SECONDS"),
    **dict.fromkeys(("user", "agent", "project", "team", "org", "target-agent", "name", "model"), "NAME"),
    **dict.fromkeys(("owner", "actor", "created-by"), "WHO"),
    **dict.fromkeys(
        ("id", "item", "trace", "message", "source-trace", "source-message", "session", "winner", "supersedes"), "ID"
    ),
    **dict.fromkeys(("related", "resource"), "ID"),
    "url": "URL",
    "scopes": "SCOPE",
}
_OF_TYPE = {int: "N", float: "NUMBER", Path: "PATH"}
_WORDS_BESIDE = 30
"""Columns, the option with them: more words than fit there stand in what is said of the option."""


def with_placeholders(commands: Mapping[str, Any]) -> None:
    """Give every value of these commands that states no placeholder of its own the one of its option or type."""
    for parameter in _parameters(commands):
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
        elif parameter.metavar is None and not parameter.is_flag:
            _state(parameter)


def usage_of(argument: Any) -> str:
    """An argument in the line that shows how to write a command: `ID`, `[FILE]` where it may be left out."""
    name = argument.metavar.rstrip(".…")
    shown = name if argument.required else f"[{name}]"
    return f"{shown}..." if argument.nargs != 1 else shown


def _parameters(commands: Mapping[str, Any]) -> Iterator[Any]:
    for command in commands.values():
        yield from command.params
        yield from _parameters(getattr(command, "commands", {}))


def _state(option: Any) -> None:
    name = option.opts[0].lstrip("-")
    choices = [str(each) for each in option.type_descriptor.choices or ()]
    if choices and len(", ".join(option.opts)) + len(beside := "|".join(choices)) < _WORDS_BESIDE:
        option.metavar = beside
    elif choices:
        option.metavar = name.rpartition("-")[2].upper()
        said, brackets, rest = (option.help or "").partition("  [")
        option.help = f"{said.removesuffix('.')}: {', '.join(choices)}.{brackets}{rest}"
    else:
        option.metavar = _OF_OPTION.get(name) or _OF_TYPE.get(_one(option.type_descriptor.annotation), "TEXT")


def _one(annotation: Any) -> Any:
    """What one value of a list is, or the annotation itself."""
    return get_args(annotation)[0] if get_origin(annotation) is list else annotation
