"""Entry point of the `kledger` command: says why where it cannot run."""

from __future__ import annotations

import os
import sys

from producers.cli.interrupted import INTERRUPTED, STOPPED, from_the_start

_OURS = ("kledger", "ledger", "projections", "consumers", "producers")


def main() -> None:
    """Run the command; Ctrl-C ends it with one line, also before it has begun and as it ends."""
    from_the_start()
    try:
        _open_closed_streams()
        _main()
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{STOPPED}\n")
        sys.exit(INTERRUPTED)


def _open_closed_streams() -> None:
    """Have nothing be read from and written to a standard stream that whoever started this has closed.

    What is opened next would have its number: the event loop of a node ended the process over one of these.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115  # it stays open


def _main() -> None:
    """Run the command; exit with 1 and the reason where the system, its place or the packages are not there."""
    if sys.platform == "win32":
        sys.exit("kledger: a node and the command run on Linux and macOS; the client alone runs here")
    try:
        os.getcwd()  # noqa: PTH109  # pathlib takes longer to import than all of this
    except FileNotFoundError:
        sys.exit("kledger: the current directory is not there any more: change into one that is")
    try:
        from producers.cli.main import main as command
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] in _OURS:
            raise
        sys.exit(
            f"kledger: the command needs the packages of a node, and {missing.name} is not installed:\n"
            "  pip install 'knowledge-ledger[node]'"
        )
    command()
