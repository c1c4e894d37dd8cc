"""What does not fit, by the name that it has on a command line: QUERY, --content."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import get_args

import typer

from kledger.client.slips.own_names import retold
from kledger.contract.errors import LedgerError

_HERE = {"acl": "reader", "into": "directory", "resource_ids": "resource"}
_BEFORE = ("the body does not fit: ", "the request does not fit: ")


def in_own_words(error: LedgerError, parameters: Iterable[inspect.Parameter]) -> str:
    """The message of an error, with the arguments and options of a command in place of the fields of its request."""
    typed = {parameter.name: _typed(parameter) for parameter in parameters}
    names = {each.strip("-").replace("-", "_").lower(): each for each in typed.values()} | typed
    message = retold(error, lambda field: _name_of(field, names) or field)
    if message != error.message:
        for said in _BEFORE:
            message = message.removeprefix(said)
    return message


def _name_of(field: str, names: dict[str, str]) -> str | None:
    """What a field is called here: a list has an option for each of its entries."""
    path = [part for part in field.split(".") if not part.isdigit()]
    head, joined = _HERE.get(path[0], path[0]), "_".join(path)
    of_one = "_".join((head.removesuffix("s"), *path[1:]))
    tried = (joined, joined.removesuffix("s"), of_one, head, head.removesuffix("s"))
    return next((names[each] for each in tried if names.get(each)), None)


def _typed(parameter: inspect.Parameter) -> str:
    """How a parameter is typed; empty for a document, whose fields are its own."""
    stated = [each for each in get_args(parameter.annotation) if isinstance(each, typer.models.ParameterInfo)]
    about = stated[0] if stated else None
    if isinstance(about, typer.models.OptionInfo):
        declared = (about.default, *(about.param_decls or ()))  # to typer the first one is a default
        named = [each.partition("/")[0] for each in declared if isinstance(each, str) and each.startswith("--")]
        return named[0] if named else f"--{parameter.name.replace('_', '-')}"
    metavar = about.metavar if about is not None else None
    return "" if metavar == "JSON" else (metavar or parameter.name.upper()).rstrip("….")
