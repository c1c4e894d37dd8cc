"""A process that exports again and again, interrupted before each thing that it does to a file, and says what is left.

    python -m tests.tree.interrupted_exports kill|fail EARLIER LATER DIR

EARLIER and LATER are answers of a list as JSON; the directory has an export of the earlier ones already, or nothing
where that is `-`. Before step 1, 2, … the process is killed, or told that the disk is full, and the same export is made
once more. It prints one JSON document a step: the files that were left, and those after the second export.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from kledger.contract.errors import LedgerError
from producers.tree.writing import export_tree

_CHANGES = {"open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod"}


def main(how: str, earlier: str, later: str, directory: str) -> None:
    step = 0
    ended = False
    while not ended:
        step += 1
        into = Path(directory) / str(step)
        if earlier != "-":
            _export(earlier, into)
        if (child := os.fork()) == 0:
            came = _interrupt(how, step, into)
            with contextlib.suppress(LedgerError):
                _export(later, into)
            os._exit(int(came()))
        _, status = os.waitpid(child, 0)
        ended = status == 0
        left = _files(into)
        try:
            _export(later, into)
            error = None
        except LedgerError as refused:
            error = refused.message
        print(orjson.dumps({"step": step, "left": left, "error": error, "files": _files(into)}).decode())  # noqa: T201


def _export(listed: str, into: Path) -> None:
    answer = orjson.loads(Path(listed).read_bytes())
    memories = {"user_memory": {"likes": "tea"}, "work_memory": None}
    ledger: Any = SimpleNamespace(list=lambda **_: answer, profiles=SimpleNamespace(both=lambda: memories))
    export_tree(ledger, into, user="ann")


def _interrupt(how: str, step: int, into: Path) -> Callable[[], bool]:
    """Interrupt this process at a step; gives whether that came."""
    left = step

    def before(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CHANGES and str(into) in str(arguments) and (event != "open" or arguments[2] & os.O_ACCMODE):
            left -= 1
            if left == 0 and how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if left == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    sys.addaudithook(before)
    return lambda: left <= 0


def _files(into: Path) -> dict[str, int]:
    """Every file below a directory, hidden ones too, with what tells its content; a manifest has a time in it."""
    found = (path for path in sorted(into.rglob("*")) if path.is_file())
    return {
        path.relative_to(into).as_posix(): 0 if path.name == "manifest.json" else hash(path.read_bytes())
        for path in found
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
