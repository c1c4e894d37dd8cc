"""What a mistyped command line is answered: all that is missing at once, what is too much, and how to write it."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import typer

from producers.cli.encoding import in_encoding, plain
from producers.cli.usage.misplaced import place_of
from producers.cli.usage.other_names import argument_of, near_options, no_such_command, other_option

F = TypeVar("F", bound=Callable[..., Any])
_NEEDS = "needs_one_of"
_UsageError: Any = typer.BadParameter.__base__
_TOO_MUCH = "Got unexpected extra argument(s) ("
_LIKE_A_TIME = re.compile(r"\d{4}-\d\d")
_NO_HELP = "No such command 'help'"


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


@contextmanager
def usage_told(root: Any, typed: Sequence[str]) -> Iterator[None]:
    """Let an error about the command line say what to write instead; `typed` is the command line.

    What was typed is shown as the terminal can show it: typer would write UTF-8 to an ASCII one.
    """
    try:
        yield
    except _UsageError as error:
        if error.ctx is not None:
            _tell(root, error, typed)
        error.show = partial(_show, error)
        raise


def _show(error: Any, file: Any = None) -> None:
    said, message = io.StringIO(), plain(error.format_message())
    error.format_message = lambda: message
    type(error).show(error, said)
    stream = file or sys.stderr
    stream.write(in_encoding(said.getvalue(), stream.encoding))


def _tell(root: Any, error: Any, typed: Sequence[str]) -> None:
    """Have the error say what to write instead, where that is known."""
    option = getattr(error, "option_name", None)
    if option and hasattr(error, "possibilities"):
        said = _no_such_option(root, error.ctx, option, typed)
        if said is not None:
            error.message, error.possibilities = said, None
        elif error.ctx is not None:  # click compares with the dashes, which any two options have in common
            error.possibilities = near_options(error.ctx, option)
    elif hasattr(error, "param_type"):  # something required is missing
        said = _all_that_is_missing(error, typed)
        error.format_message = lambda: said
    elif said := _in_other_words(error):
        error.message = said


def _no_such_option(root: Any, context: Any, option: str, typed: Sequence[str]) -> str | None:
    if said := place_of(root, context, option, typed):
        return said
    if here := other_option(context, option):
        return f"No such option: {option}. Here it is {here}."
    if argument := argument_of(context, option):
        return f"No such option: {option}. {_unnamed(context, argument)}"
    return None


def _all_that_is_missing(error: Any, typed: Sequence[str]) -> str:
    missing, extra = _missing(error.ctx, error.param, typed)
    said = error.format_message() if len(missing) == 1 else f"Missing: {', '.join(missing)}."
    if extra:
        return f"{said} {_too_much(error.ctx, ' '.join(extra))}"
    typed_as_option = next((each for each in missing if f"--{each.lower()}" in typed), None)
    return said if typed_as_option is None else f"{said} {_unnamed(error.ctx, typed_as_option)}"


def _in_other_words(error: Any) -> str | None:
    if error.message.startswith(_TOO_MUCH):
        return _too_much(error.ctx, error.message.removeprefix(_TOO_MUCH).removesuffix(")"))
    if error.message.startswith(_NO_HELP):
        return "The help is an option: kledger -h, or of a command: kledger COMMAND -h."
    if said := no_such_command(error.ctx, error.message):
        return said
    cause = error.__cause__
    return _refused(cause, error) if hasattr(cause, "errors") else None  # a value that pydantic refused


def _missing(context: Any, first: Any, typed: Sequence[str]) -> tuple[list[str], list[str]]:
    """All that the command requires and was not given, arguments before options; and what it has no place for."""
    command = context.command
    given, extra, _ = command.make_parser(context).parse_args(args=_own(context, typed))

    def value_of(each: Any) -> Any:
        return each.consume_value(context, given)[0]

    missing = [
        each
        for each in command.get_params(context)
        if each is first or (each.required and each.value_is_missing(value_of(each)))
    ]
    missing.sort(key=lambda each: each.param_type_name != "argument")
    named = [each.opts[0] if each.param_type_name == "option" else each.display_name_raw for each in missing]
    return [*named, *missing_of(command, value_of)], extra


def _own(context: Any, typed: Sequence[str]) -> list[str]:
    """What was typed after the name of the command."""
    rest = [*typed]
    for name in context.command_path.split()[1:]:
        rest = rest[rest.index(name) + 1 :]
    return rest


def _unnamed(context: Any, argument: str) -> str:
    pieces = context.command.collect_usage_pieces(context)[1:]
    return f"{argument} stands without a name: {' '.join((context.command_path, *pieces))}"


def _too_much(context: Any, extra: str) -> str:
    if not any(each.param_type_name == "argument" for each in context.command.params):
        return f"Too much: {extra}. {context.command_path} takes options alone."
    return f"Too much: {extra}. A text or a path of several words stands in quotes."


def _refused(cause: Any, error: Any) -> str:
    from kledger.contract.faults import in_plain_words

    fault = cause.errors()[0]
    value, meant = str(fault.get("input", "")), getattr(error.param, "help", None) or ""
    if _LIKE_A_TIME.match(value) and "position" in meant:
        return f"{value[:40]!r} is a time, and a position of the log is wanted: a whole number"
    return in_plain_words(fault)
