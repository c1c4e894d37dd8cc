"""The root of the `kledger` command: the commands that each file of `commands/` lists."""

from __future__ import annotations

from typing import Annotated

import typer

from ledger.runtime.private import private_files
from producers.cli.commands import (
    admin,
    backup,
    evolutions,
    forget,
    importing,
    integrity,
    knowledge,
    knowledge_reading,
    lineage,
    mcp,
    profiles,
    publishers,
    refused,
    resources,
    sessions,
    sharing,
    slims,
    tokens,
    trees,
)
from producers.cli.commands.memory import commands as memory
from producers.cli.commands.memory import documents, projects
from producers.cli.commands.overview import bulk
from producers.cli.commands.overview import reading as overview
from producers.cli.commands.recall import commands as recall
from producers.cli.commands.recall import recalls
from producers.cli.examples import with_example
from producers.cli.screen import degrade
from producers.cli.session import AUDIT, EXIT_CODES, KNOWLEDGE, NODE

app = typer.Typer(
    name="kledger",
    help="Knowledge Ledger: what agents know, where it came from, and what became of it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"kledger {admin.product_version()}")
        raise typer.Exit


@app.callback()
def every_command(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Knowledge Ledger: what agents know, where it came from, and what became of it."""


FILES = (
    *(admin, tokens, publishers),
    *(importing, documents, knowledge_reading, overview, knowledge, bulk, lineage, evolutions, slims, mcp),
    *(sharing, recall, recalls, trees),
    *(memory, projects, sessions, profiles, resources, backup, forget, integrity, refused),
)
"""The files that list commands, in the order of the help; each lists its own."""
PANELS = (NODE, KNOWLEDGE, AUDIT)


def _add_examples(commands: typer.Typer) -> None:
    for command in commands.registered_commands:
        command.help = with_example(command.callback.__doc__ if command.callback else None)
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            _add_examples(group.typer_instance)


for file in FILES:
    app.registered_commands += file.app.registered_commands
    app.registered_groups += file.app.registered_groups
app.registered_commands.sort(key=lambda command: PANELS.index(str(command.rich_help_panel)))
app.registered_groups.sort(key=lambda group: PANELS.index(str(group.rich_help_panel)))
_add_examples(app)


def main() -> None:
    """The entry point of the `kledger` script."""
    degrade()
    with private_files():
        app(prog_name=app.info.name)  # shell completion uses this name, also when run as a module


if __name__ == "__main__":
    main()
