"""An empty path: what a script types whose variable holds nothing. To the system it is the current directory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import typer

_PLACES = re.compile(r"\b(FILE|DIR)\b")


def names_a_path(parameter: Any) -> bool:
    """Whether what is typed is a file or a directory."""
    return "Path" in str(parameter.type_descriptor.annotation) or bool(_PLACES.search(parameter.metavar or ""))


def refuse_empty_paths(command: Any, context: Any, typed: Sequence[str]) -> None:
    """Raise typer.BadParameter where a path is empty: nobody means the current directory so."""
    if context.resilient_parsing or all(word and not word.endswith("=") for word in typed):
        return
    given, _, _ = command.make_parser(context).parse_args(args=[*typed])
    for parameter in filter(names_a_path, command.get_params(context)):
        value = given.get(parameter.name)
        if "" in (value if isinstance(value, list | tuple) else [value]):
            raise typer.BadParameter(
                "the path is empty: name a file or a directory; the current one is .", ctx=context, param=parameter
            )
