"""Which file of `commands/` has which command, in the order of the help; a file is loaded when its command is named."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from producers.cli.examples import with_example

FILES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("admin", ("up", "status", "models", "version")),
    ("publishers", ("nats-config",)),
    ("tokens", ("token",)),
    ("sharing", ("scope-type",)),
    ("importing", ("import",)),
    ("memory.documents", ("ingest",)),
    ("knowledge_reading", ("search", "show", "list", "history")),
    ("overview.reading", ("overview", "facets", "changes")),
    ("knowledge", ("save", "revise", "rate", "retire", "restore")),
    ("lineage", ("lineage",)),
    ("evolutions", ("revert", "evolve", "extract")),
    ("slims", ("slim", "slims")),
    ("mcp", ("mcp",)),
    ("sharing", ("share", "why-visible")),
    ("recall.commands", ("startup", "recall", "focus", "goal", "prompt")),
    ("recall.recalls", ("recalls", "served")),
    ("trees", ("export-tree", "import-tree")),
    ("memory.documents", ("document",)),
    ("evolutions", ("evolution", "conflicts")),
    ("memory.commands", ("memory",)),
    ("memory.projects", ("project",)),
    ("sessions", ("session",)),
    ("profiles", ("profile",)),
    ("resources", ("resource",)),
    ("admin", ("rebuild", "verify", "replay", "snapshot", "sql")),
    ("backup", ("backup", "restore-backup", "repair")),
    ("forget", ("forget",)),
    ("integrity", ("audit", "prove", "check-proof", "key", "chain")),
    ("refused", ("refused",)),
)
"""Files with their commands; the panels of the help show them in this order."""
FILE_OF = {name: file for file, names in FILES for name in names}


class CommandsOfFiles(TyperGroup):
    """The commands of all files. To run one loads its own file; the help of all of them loads every file."""

    def list_commands(self, _context: Any) -> list[str]:
        return [*FILE_OF]

    def get_command(self, _context: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            # what is misspelt is told beside the names that are there
            for file in {FILE_OF[cmd_name]} if cmd_name in FILE_OF else {*FILE_OF.values()}:
                self.commands.update(commands_of(file))
        return self.commands.get(cmd_name)


def commands_of(file: str) -> dict[str, Any]:
    """The commands of one file, by name."""
    own: typer.Typer = import_module(f"producers.cli.commands.{file}").app
    for each in _with_groups(own):
        for command in each.registered_commands:
            command.help = with_example(command.callback.__doc__ if command.callback else None)
    return {**typer.main.get_group(own).commands}


def _with_groups(commands: typer.Typer) -> Iterator[typer.Typer]:
    yield commands
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            yield from _with_groups(group.typer_instance)
