"""The form in which `kledger sql` writes rows: for the screen, or for other programs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path

import typer


class Format(StrEnum):
    """What `kledger sql` writes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def format_of(form: Format | None, out: Path | None) -> Format:
    """The requested format, else the one of the file's suffix. Raises typer.BadParameter."""
    if form is None:
        suffix = "" if out is None else out.suffix.lstrip(".").lower()
        try:
            form = Format(suffix) if suffix else Format.TABLE
        except ValueError:
            raise typer.BadParameter("name a file .csv, .parquet or .json, or add --format") from None
    if form is Format.TABLE and out is not None:
        raise typer.BadParameter("a table is for the screen: name a file .csv, .parquet or .json, or add --format")
    if form is Format.PARQUET and out is None and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is no text for a screen: add --out FILE")
    return form
