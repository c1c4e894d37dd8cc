"""Report stream: the standard output of a process whose parent reads it, for what it reports and nothing else."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import BinaryIO


def report_stream() -> BinaryIO:
    """Take the standard output of this process, as bytes; whatever else writes there reaches standard error.

    That is a log line, a print of a library, or the output of a process that this one starts. To be called first.
    """
    report = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # line by line, among the log lines
    return report


def last_word(report: BinaryIO, said: bytes) -> None:
    """Write the end of a report, and close it; quietly where nobody reads it any more."""
    with contextlib.suppress(BrokenPipeError):
        report.write(said)
        report.flush()
    with contextlib.suppress(BrokenPipeError):
        report.close()  # what it holds would be written once more as the process ends
