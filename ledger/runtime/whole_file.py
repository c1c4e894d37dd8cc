"""Atomic file creation: a file appears whole or not at all, overwrites nothing unless asked, in an existing directory.

It is written in a temporary directory beside its place, on the same disk, and renamed. A failure leaves nothing behind.
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
    """Raise InvalidPayload when `file` cannot be created; with `over` it may exist already."""
    try:
        followed(file)
        reason = _hindrance(file, over)
    except OSError as error:  # such as a name that is too long
        raise _cannot(file, error) from error
    if reason:
        raise _refused(reason)


@contextmanager
def in_place(file: Path, *, over: bool = False) -> Iterator[Path]:
    """A draft to write; it replaces `file` when the block succeeds, and is removed when it fails.

    Raises InvalidPayload: `file` cannot be written, or exists without `over`.
    """
    check_place(file, over=over)
    file = followed(file)  # so that the target of a link is replaced, not the link
    try:
        directory = Path(tempfile.mkdtemp(prefix=f".{file.name[:_NAME_SHOWN]}-", dir=file.parent))
    except OSError as error:
        raise _cannot(file, error) from error
    try:
        draft = directory / file.name
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        check_place(file, over=over)
        draft.replace(file)
    except OSError as error:
        raise _cannot(file, error) from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def check_directory_place(directory: Path) -> None:
    """Raise InvalidPayload unless `directory` exists, or can be created in an existing one."""
    try:
        followed(directory)
        if directory.is_dir():
            return
        reason = (
            f"{directory} cannot be written into, it is a file: name a directory"
            if directory.exists()
            else _no_folder(directory)
        )
    except OSError as error:
        raise _cannot(directory, error) from error
    if reason:
        raise _refused(reason)


def check_for_duckdb(path: Path) -> None:
    """Raise InvalidPayload where DuckDB can write no file at `path` or below it.

    It takes a ? for the end of the path when it names the file beside that a commit is written to first.
    """
    if "?" in str(followed(path)):
        raise _refused(f"{path} has a ?, with which DuckDB writes no file: name a path without one")


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


def _refused(reason: str) -> InvalidPayload:
    return InvalidPayload(reason, errors=[{"field": "into", "reason": "cannot be written"}])
