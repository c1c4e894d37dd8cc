"""What a process may say beside its report, and a run of a module that says all of it as it asks for its order.

`python -m tests.processes.noise MODULE` runs MODULE as a program.
"""

from __future__ import annotations

import logging
import os
import runpy
import subprocess
import sys
from typing import Any

import structlog

KINDS = ("printed", "written", "of a child", "logged", "of a library")


def make_noise() -> None:
    """Say something in each of KINDS."""
    sys.stdout.write("noise printed\n")
    sys.stdout.flush()
    os.write(1, b"noise written\n")
    subprocess.run(["echo", "noise of a child"], check=True)
    structlog.get_logger().warning("noise logged")
    logging.getLogger("a.library").warning("noise of a library")


class Loud:
    """A stream that is loud about whatever it is asked for."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        make_noise()
        return getattr(self._stream, name)


if __name__ == "__main__":
    sys.stdin = Loud(sys.stdin)  # the part of it that a job uses
    module = sys.argv[1]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
