"""Which file of `commands/` has which command, in the order of the help; a file is loaded when its command is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from producers.cli.interrupted import INTERRUPTED, STOPPED
from producers.cli.usage.errors import usage_told
from producers.cli.usage.examples import with_example
from producers.cli.usage.placeholders import with_placeholders
from producers.cli.usage.plain_help import Group, Shown, first_line, plainly

FILES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("node", ("up",)),
    ("admin", ("status", "models", "version")),
    ("publishers", ("nats-config",)),
    ("importing", ("import",)),
    ("memory.documents", ("ingest",)),
    ("knowledge_reading", ("search", "show", "list", "history")),
    ("overview.reading", ("whoami", "overview", "facets", "changes")),
    ("knowledge", ("save", "revise", "rate", "retire", "restore")),
    ("lineage", ("lineage", "traces")),
    ("evolutions", ("revert", "evolve", "extract")),
    ("slims", ("slim", "slims")),
    ("mcp", ("mcp",)),
    ("sharing", ("share", "why-visible")),
    ("recall.commands", ("startup", "recall", "focus", "goal", "goals", "prompt")),
    ("recall.recalls", ("recalls", "served")),
    ("trees", ("export-tree", "import-tree")),
    ("admin", ("rebuild", "verify", "replay", "snapshot", "sql")),
    ("jobs", ("jobs",)),
    ("backup.making", ("backup",)),
    ("backup.restoring", ("restore-backup",)),
    ("backup.repairing", ("repair",)),
    ("forget", ("forget",)),
    ("integrity", ("audit", "prove", "check-proof")),
    ("tokens", ("token",)),
    ("sharing", ("scope-type",)),
    ("memory.documents", ("document",)),
    ("overview.bulk", ("bulk",)),
    ("evolutions", ("evolution", "extraction", "conflicts")),
    ("memory.commands", ("memory",)),
    ("memory.projects", ("project",)),
    ("sessions", ("session",)),
    ("profiles", ("profile",)),
    ("resources", ("resource",)),
    ("integrity", ("key", "chain")),
    ("refused", ("refused",)),
)
"""Files with their commands; the panels of the help show them in this order."""
FILE_OF = {name: file for file, names in FILES for name in names}
FIRST_LINES = Path(__file__).with_name("first_lines.json")
"""What the help of all commands shows, so that it loads no file of theirs. `make docs` writes it from them."""

_TYPED = "kledger.typed"


class _Loading(MutableMapping[str, Any]):
    """The commands by name. The names are known; a command is there once its file is loaded."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded |= commands_of(FILE_OF[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} stays")

    def __iter__(self) -> Iterator[str]:
        return iter(FILE_OF)

    def __len__(self) -> int:
        return len(FILE_OF)


class CommandsOfFiles(Group):
    """The commands of all files. To run one loads its own file; the help of all of them loads none."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loading()

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Read the options before the command; an error says what to write instead."""
        context.meta[_TYPED] = [*args]
        with usage_told(self, context.meta[_TYPED]):
            return super().parse_args(context, args)

    def invoke(self, context: Any) -> Any:
        """Run the command; a usage error says what to write instead, and Ctrl-C ends it with one line."""
        try:
            with usage_told(self, context.meta[_TYPED]):
                return super().invoke(context)
        except KeyboardInterrupt:
            sys.stderr.write(f"\n{STOPPED}\n")
            raise typer.Exit(INTERRUPTED) from None

    def list_commands(self, _context: Any) -> list[str]:
        return [*FILE_OF]

    def shown(self) -> Iterator[Shown]:
        """The commands with their first lines, as FIRST_LINES has them."""
        yield from json.loads(FIRST_LINES.read_text("utf-8"))


def first_lines() -> list[Shown]:
    """What belongs in FIRST_LINES: every command, in the order of the help. Loads every file."""
    return [first_line(command) for command in CommandsOfFiles(name="kledger").commands.values()]


def commands_of(file: str) -> dict[str, Any]:
    """The commands of one file, by name."""
    own: typer.Typer = import_module(f"producers.cli.commands.{file}").app
    plainly(own)
    for each in _with_groups(own):
        for command in each.registered_commands:
            command.help = with_example(command.callback.__doc__ if command.callback else None)
    commands = {**typer.main.get_group(own).commands}
    with_placeholders(commands)
    return commands


def _with_groups(commands: typer.Typer) -> Iterator[typer.Typer]:
    yield commands
    for group in commands.registered_groups:
        if group.typer_instance is not None:
            yield from _with_groups(group.typer_instance)
