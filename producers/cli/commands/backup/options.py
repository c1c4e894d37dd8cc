"""Options of the commands of backups: of which node or broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Nats = Annotated[
    str | None, typer.Option(metavar="URL", help="The NATS server, with its administrator: nats://USER:PASSWORD@HOST.")
]


def check_one(data: Path | None, nats: str | None) -> None:
    if (data is None) == (nats is None):
        raise typer.BadParameter("give either --data DIR or --nats URL")
