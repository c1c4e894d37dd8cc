"""The page of the command: every `kledger …`, from the same source as its --help."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import typer

from docs.generators.tables import GENERATED, table
from producers.cli.answer import EXIT_CODES
from producers.cli.as_command import SHARED_PANEL
from producers.cli.main import app
from producers.cli.usage.examples import HEAD


def command_page() -> str:
    """docs/reference/command.md."""
    root = typer.main.get_command(app)
    assert isinstance(root, typer.core.TyperGroup)  # it has more than one command
    return "\n".join(
        [
            "# The command\n",
            GENERATED,
            f"{root.help}\n",
            f"{EXIT_CODES}\n",
            "All but `up` talk to a running node over HTTP. These options belong to them all, the identities to "
            "those that ask for somebody:\n",
            table(("option", "meaning"), _options(root.commands["search"], shared=True)),
            *_commands(root, "kledger"),
        ]
    )


def _commands(group: typer.core.TyperGroup, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield f"## {path} {name}\n\n{command.help}\n"
            yield from _commands(command, f"{path} {name}")
        else:
            yield _command(command, f"{path} {name}")


def _command(command: object, path: str) -> str:
    assert isinstance(command, typer.core.TyperCommand)  # what typer makes of a function
    said, _, example = inspect.cleandoc(command.help or "").partition(f"\n\n{HEAD}\n")
    arguments = [
        (f"`{argument.metavar or (argument.name or '').upper()}`", argument.help or "")
        for argument in command.params
        if isinstance(argument, typer.core.TyperArgument)
    ]
    parts = [f"## {path}\n", f"{said}\n"]
    if example:
        parts.append(f"```sh\n{inspect.cleandoc(example)}\n```\n")
    options = list(_options(command, shared=False))
    if arguments or options:
        parts.append(table(("argument or option", "meaning"), [*arguments, *options]))
    return "\n".join(parts)


def _options(command: object, *, shared: bool) -> Iterator[tuple[str, str]]:
    assert isinstance(command, typer.core.TyperCommand)
    for option in command.params:
        if not isinstance(option, typer.core.TyperOption) or option.hidden or "--help" in option.opts:
            continue
        if (option.rich_help_panel == SHARED_PANEL) is shared:
            record = option.get_help_record(_context(command))
            if record is not None:
                yield f"`{record[0]}`", record[1]


def _context(command: typer.core.TyperCommand) -> typer.Context:
    return typer.Context(command)
