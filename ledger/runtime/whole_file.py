"""How does a file come to be where somebody wants it? Whole or not at all, over nothing unasked, in an existing folder.

It is made in a directory of its own beside its place, on the same disk, and renamed. What fails leaves nothing.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kledger.contract.errors import InvalidPayload
from ledger.runtime.symlinks import followed

_NAME_SHOWN = 50


def check_place(file: Path, *, over: bool = False) -> None:
    """Raise InvalidPayload when `file` cannot be made; with `over` it may be there."""
    try:
        followed(file)
        why = _hindrance(file, over)
    except OSError as error:  # such as a name that is too long
        raise _cannot(file, error) from error
    if why:
        raise _refused(why)


@contextmanager
def in_place(file: Path, *, over: bool = False) -> Iterator[Path]:
    """A draft to write; it becomes `file` when the block ends well, and is removed when it does not.

    Raises InvalidPayload: `file` cannot be written, or is there and not `over`.
    """
    check_place(file, over=over)
    file = followed(file)  # a link stays one
    try:
        room = Path(tempfile.mkdtemp(prefix=f".{file.name[:_NAME_SHOWN]}-", dir=file.parent))
    except OSError as error:
        raise _cannot(file, error) from error
    try:
        draft = room / file.name
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        check_place(file, over=over)
        draft.replace(file)
    except OSError as error:
        raise _cannot(file, error) from error
    finally:
        shutil.rmtree(room, ignore_errors=True)


def check_directory_place(directory: Path) -> None:
    """Raise InvalidPayload when `directory` neither is there nor can be made in a folder that is."""
    try:
        followed(directory)
        if directory.is_dir():
            return
        why = (
            f"{directory} cannot be written into, it is a file: name a directory"
            if directory.exists()
            else _no_folder(directory)
        )
    except OSError as error:
        raise _cannot(directory, error) from error
    if why:
        raise _refused(why)


def _hindrance(file: Path, over: bool) -> str | None:
    if file.is_dir():
        return f"{file} is a directory: name a file in it"
    if file.exists() and not over:
        return f"{file} is there already: choose another name, or take it away first"
    return _no_folder(file)


def _no_folder(path: Path) -> str | None:
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"{path} cannot be written: there is no directory {folder}"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{path} cannot be written: you may not write in {folder}"
    return None


def _cannot(path: Path, error: OSError) -> InvalidPayload:
    return _refused(f"{path} cannot be written: {error.strerror or error}")


def _refused(why: str) -> InvalidPayload:
    return InvalidPayload(why, errors=[{"field": "into", "reason": "cannot be written"}])
