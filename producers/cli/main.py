"""The root of the `kledger` command: its commands are those of the files in `commands/`, loaded when they are named."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from ledger.runtime.gc_tuning import collect_seldom
from ledger.runtime.private import private_files
from producers.cli.answer import EXIT_CODES
from producers.cli.command_files import CommandsOfFiles
from producers.cli.encoding import degrade, plain
from producers.cli.usage.plain_help import WIDEST
from producers.cli.variables import mistyped

app = typer.Typer(
    name="kledger",
    cls=CommandsOfFiles,
    help="Knowledge Ledger: what agents know, where it came from, and what became of it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)


def _print_version(requested: bool) -> None:
    if requested:
        from ledger.installed import product_version

        typer.echo(f"kledger {product_version()}")
        raise typer.Exit


@app.callback()
def every_command(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Knowledge Ledger: what agents know, where it came from, and what became of it."""
    for line in mistyped(os.environ):
        sys.stderr.write(f"warning: {plain(line)}\n")


def main() -> None:
    """The entry point of the `kledger` script."""
    collect_seldom()  # a command ends before its garbage matters, and what it imports is none
    degrade()
    with private_files():
        app(prog_name=app.info.name)  # shell completion uses this name, also when run as a module


if __name__ == "__main__":
    main()
