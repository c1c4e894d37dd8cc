"""Report stream: the standard output of a process whose parent reads it, for what it reports and nothing else."""

from __future__ import annotations

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
