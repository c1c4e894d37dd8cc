"""Options of the commands of backups: of which node or broker, and by which key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kledger.contract.errors import InvalidPayload

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.integrity.signing_keys import VerifyingKey

Nats = Annotated[
    str | None, typer.Option(metavar="URL", help="The NATS server, with its administrator: nats://USER:PASSWORD@HOST.")
]
Key = Annotated[
    str | None, typer.Option(metavar="KEY", help="The public key (a file, or in base64) that must have signed it.")
]


def check_one(data: Path | None, nats: str | None) -> None:
    if (data is None) == (nats is None):
        raise typer.BadParameter("give either --data DIR or --nats URL")


def key_of(option: str | None) -> VerifyingKey | None:
    """The public key of --key, a file or the key itself. Raises InvalidPayload."""
    if option is None:
        return None
    from ledger.integrity.signing_keys import VerifyingKey

    file = Path(option)
    try:
        return VerifyingKey.from_text(file.read_text("ascii") if file.is_file() else option)
    except (OSError, ValueError, InvalidPayload) as error:
        raise InvalidPayload(
            f"{option!r} is neither a file with a public key nor a key in base64", errors=[]
        ) from error
