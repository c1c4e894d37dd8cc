"""Output and errors of commands that work on the node's files and need no running node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kledger.contract.errors import InvalidPayload, LedgerError
from producers.cli.answer import FAILED, print_refusal
from producers.cli.as_command import files_named

Data = Annotated[Path, typer.Option(envvar="KLEDGER_DATA", help="The data directory of the node.")]


@contextmanager
def answering(as_json: bool) -> Iterator[None]:
    """Have a LedgerError told, and become an exit code."""
    try:
        with files_named():
            yield
    except LedgerError as error:
        print_refusal(error, as_json=as_json)
        raise typer.Exit(FAILED) from error


def require_node(data: Path, more: str = "") -> None:
    """Raise InvalidPayload when `data` is no data directory of a node, as where its name is mistyped."""
    from ledger.runtime.data_directory import is_data_directory

    if not is_data_directory(data):
        what = "no data of a node is in" if data.is_dir() else "there is no directory"
        raise InvalidPayload(
            f"{what} {data}: name the node's data directory, which kledger up tells, with --data{more}",
            errors=[{"field": "data", "reason": "is no data directory of a node"}],
        )


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Log to stderr, warnings alone: stdout holds the answer, and what a broker that is started here says is noise."""
    import logging

    import structlog

    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        yield
    finally:
        structlog.configure(**before)
