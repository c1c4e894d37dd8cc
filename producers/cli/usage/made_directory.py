"""A directory that a command would make, whose name was perhaps meant as a command."""

from __future__ import annotations

from pathlib import Path

import typer

_WORDS = (
    "add apply begin check create delete drop find get help history info init list log ls make new now read reject "
    "remove restore retire revert revoke run save search set share show start status stop test undo update verify "
    "version view write"
)
"""What groups have commands of, here or elsewhere: `token list` invites `backup list`."""


def made_directory(typed: str, meant: str = "") -> str:
    """The directory as it was typed; `meant` is what else there is to write. Raises typer.BadParameter for such a word.

    One that is there, or that is written as a path, is no word.
    """
    if typed not in _WORDS.split() or Path(typed).is_dir():
        return typed
    more = f"; {meant}" if meant else ""
    raise typer.BadParameter(
        f"{typed!r} is no command here, and no directory of that name is there: to make one write ./{typed}{more}",
        param_hint="DIR",
    )
