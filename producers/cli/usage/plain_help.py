"""Help as plain text: arguments, options and commands below headings, without a library for terminals.

Drawing frames took more of the processor than all else that `--help` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from producers.cli.encoding import in_encoding
from producers.cli.interrupted import cleaned_up
from producers.cli.usage.empty_paths import refuse_empty_paths
from producers.cli.usage.placeholders import usage_of

WIDEST = 100
"""Columns, where the terminal has more."""
ARGUMENTS, OPTIONS, COMMANDS = "Arguments", "Options", "Commands"
"""The headings of what names no panel."""

Shown = tuple[str, str, str]
"""A heading, a name below it, and what it is."""


class Command(TyperCommand):
    """A command whose options stand below the headings that they name."""

    def get_help(self, ctx: Any) -> str:
        """The help in the encoding of the terminal: typer would write UTF-8 to an ASCII one."""
        return in_encoding(super().get_help(ctx), sys.stdout.encoding)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        refuse_empty_paths(self, ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run it; from here on Ctrl-C is an exception."""
        with cleaned_up():
            return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name of the command in the line that shows how to write it."""
        arguments = (each for each in self.get_params(ctx) if each.param_type_name == "argument")
        return [*([self.options_metavar] if self.options_metavar else []), *map(usage_of, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options, those that many commands have last."""
        _write(formatter, _parameters(self, ctx))


class Group(TyperGroup):
    """A group of commands, which stand below the headings that they name."""

    def get_help(self, ctx: Any) -> str:
        """The help in the encoding of the terminal."""
        return in_encoding(super().get_help(ctx), sys.stdout.encoding)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, then the commands."""
        _write(formatter, _parameters(self, ctx))
        _write(formatter, self.shown())

    def shown(self) -> Iterable[Shown]:
        """The commands with their first lines."""
        return map(first_line, self.commands.values())


def first_line(command: Any) -> Shown:
    """A command, or a group of them, as the help above it shows it."""
    said = " ".join((command.help or "").partition("\n\n")[0].split())
    return command.rich_help_panel or COMMANDS, command.name, said


def plainly(commands: typer.Typer) -> None:
    """Let the help and the errors of these commands be plain text, and those of every group below."""
    commands.rich_markup_mode = None
    for command in commands.registered_commands:
        if command.cls is TyperCommand:
            command.cls = Command
    for group in commands.registered_groups:
        group.cls = Group
        if group.typer_instance is not None:
            plainly(group.typer_instance)


def _parameters(command: Any, context: Any) -> Iterator[Shown]:
    for each in command.get_params(context):
        record = each.get_help_record(context)
        if record is None:
            continue
        if each.param_type_name == "argument":
            yield ARGUMENTS, each.metavar, record[1]
        else:
            yield each.rich_help_panel or OPTIONS, *record


def _write(formatter: Any, shown: Iterable[Shown]) -> None:
    order = {ARGUMENTS: 0, OPTIONS: 1}
    rows = sorted(shown, key=lambda one: order.setdefault(one[0], len(order)))
    for heading, below in groupby(rows, key=lambda one: one[0]):
        with formatter.section(heading):
            formatter.write_dl([(name, said) for _, name, said in below])
