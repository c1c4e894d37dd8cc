"""How does a command answer that works on the node's files, and needs no node that runs?"""

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
    """A session that answers and has nobody to ask; errors of ours become exit codes."""
    session = Session("", as_json)
    try:
        with files_named():
            yield session
    except LedgerError as error:
        session.refuse(error)
        raise typer.Exit(FAILED) from error
