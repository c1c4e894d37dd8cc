"""Output and errors of commands that work on the node's files and need no running node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kledger.contract.errors import InvalidPayload, LedgerError
from producers.cli.answer import FAILED, print_refusal
from producers.cli.as_command import files_named

if TYPE_CHECKING:  # its imports take a good part of the time of `kledger --help`
    from ledger.integrity.signing_keys import VerifyingKey

Data = Annotated[Path, typer.Option(envvar="KLEDGER_DATA", help="The data directory of the node.")]
PublicKey = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="The public key that you trust: a file, or in base64."),
]


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
    from ledger.runtime.data_directory import check_data_place, is_data_directory

    if not is_data_directory(data):
        if data.is_dir():
            check_data_place(data)
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


def public_key(option: str | None) -> VerifyingKey | None:
    """The public key of --key, a file or the key itself. Raises InvalidPayload."""
    if option is None:
        return None
    from ledger.integrity.signing_keys import VerifyingKey
    from producers.cli.secret_keys import quoted, refusal_of_secret

    try:
        file = Path(option) if Path(option).is_file() else None
        text = option if file is None else file.read_text("ascii")
        if (secret := refusal_of_secret(text, file)) is None:
            return VerifyingKey.from_text(text)
    except (OSError, ValueError, InvalidPayload) as error:
        raise InvalidPayload(
            f"{quoted(option)} is neither a file with a public key nor a key in base64: kledger key show tells the "
            "node's",
            errors=[],
        ) from error
    raise InvalidPayload(secret, errors=[{"field": "key", "reason": "is a secret key"}])
