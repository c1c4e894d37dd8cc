"""Entry point of the `kledger` command: says why where it cannot run."""

from __future__ import annotations

import sys

from producers.cli.interrupted import INTERRUPTED, STOPPED, from_the_start

_OURS = ("kledger", "ledger", "projections", "consumers", "producers")


def main() -> None:
    """Run the command; Ctrl-C ends it with one line, also before it has begun and as it ends."""
    from_the_start()
    try:
        _main()
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{STOPPED}\n")
        sys.exit(INTERRUPTED)


def _main() -> None:
    """Run the command; exit with 1 and the reason where the system or the packages of a node are not there."""
    if sys.platform == "win32":
        sys.exit("kledger: a node and the command run on Linux and macOS; the client alone runs here")
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
