"""Writing a result to a file that the user named: checked before the node is called, then written atomically."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from kledger.contract.errors import InvalidPayload
from ledger.runtime.symlinks import followed, is_descriptor
from ledger.runtime.whole_file import check_place, in_place

Force = Annotated[bool, typer.Option("--force", help="Write over the file if it is there.")]

READER_WITHIN = 5.0
"""Seconds within which a FIFO needs a reader: open() itself would block for ever."""
_PAUSE = 0.02


def check_file(file: Path, force: bool) -> None:
    """Raise InvalidPayload when the file cannot be written, or exists and `force` is not given."""
    if _is_stream(followed(file)):
        return
    if file.is_file() and not force:
        raise InvalidPayload(f"{file} is there already: choose another name, or write over it with --force", errors=[])
    check_place(file, over=force)


def put(file: Path, content: bytes, force: bool) -> None:
    """Write the file, whole or not at all. Raises InvalidPayload."""
    place = followed(file)
    if not _is_stream(place):
        with in_place(file, over=force) as draft:
            draft.write_bytes(content)
        return
    with os.fdopen(_opened(place, file), "wb") as stream:
        stream.write(content)


def is_stdout(file: Path) -> bool:
    """Whether `file` leads to the command's own stdout."""
    place = followed(file)
    return place.name == "1" and (is_descriptor(place) or place.parent == Path("/dev/fd"))  # elsewhere it is a device


def is_terminal(file: Path | None) -> bool:
    """Whether what is written to `file`, or to stdout without one, is on a terminal."""
    if file is None:
        return sys.stdout.isatty()
    place = followed(file)
    if is_descriptor(place):
        return os.isatty(int(place.name))
    return (
        place.is_char_device() and place.is_relative_to("/dev") and place.parts[2].startswith(("tty", "pts", "console"))
    )


def _is_stream(place: Path) -> bool:
    """Whether it is a descriptor, device or FIFO, where nothing can be overwritten."""
    return is_descriptor(place) or place.is_char_device() or place.is_fifo()


def _opened(place: Path, file: Path) -> int:
    """A descriptor to write to. One that this process has open is continued, not truncated."""
    if is_descriptor(place):
        return os.dup(int(place.name))
    descriptor = _with_reader(place, file)
    os.set_blocking(descriptor, True)
    return descriptor


def _with_reader(place: Path, file: Path) -> int:
    until = time.monotonic() + READER_WITHIN
    while True:
        try:
            return os.open(place, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        if time.monotonic() > until:
            raise InvalidPayload(
                f"{file} is not written: nobody reads this FIFO; start its reader first, or name a file", errors=[]
            )
        time.sleep(_PAUSE)
