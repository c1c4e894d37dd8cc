"""How does what a command found become a file that its user named? Checked before a node is asked, then at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ledger.errors import InvalidPayload
from ledger.whole_file import check_place, in_place

Force = Annotated[bool, typer.Option("--force", help="Write over the file if it is there.")]


def check_file(file: Path, force: bool) -> None:
    """Raise InvalidPayload when the file cannot be written, or is there and is not to be written over."""
    if _is_stream(file):
        return
    if file.is_file() and not force:
        raise InvalidPayload(f"{file} is there already: choose another name, or write over it with --force", errors=[])
    check_place(file, over=force)


def put(file: Path, content: bytes, force: bool) -> None:
    """Write the file, whole or not at all. Raises InvalidPayload."""
    if _is_stream(file):
        file.write_bytes(content)
        return
    with in_place(file, over=force) as draft:
        draft.write_bytes(content)


def _is_stream(file: Path) -> bool:
    """Such as /dev/stdout: nothing is lost that stood there."""
    return file.is_char_device() or file.is_fifo()
