"""Output and errors of commands that work on the node's files and need no running node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kledger.contract.errors import LedgerError
from producers.cli.session import FAILED, Session, files_named

Data = Annotated[Path, typer.Option(envvar="KLEDGER_DATA", help="The data directory of the node.")]
DEFAULT_DATA = Path(".kledger")


@contextmanager
def answering(as_json: bool) -> Iterator[Session]:
    """A session without a node; a LedgerError becomes an exit code."""
    session = Session("", as_json)
    try:
        with files_named():
            yield session
    except LedgerError as error:
        session.refuse(error)
        raise typer.Exit(FAILED) from error
