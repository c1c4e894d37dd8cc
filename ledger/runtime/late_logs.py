"""Logging of a process that seldom says anything: what writes the lines is loaded by the first of them.

structlog loads the library that it draws tracebacks with in a terminal: together they are a fifth of the memory of a
small process, and a fifth of its start.
"""

from __future__ import annotations

import logging


class _First(logging.Handler):
    """Takes the first line, and hands this and all later ones to `log_to_stderr`."""

    def emit(self, record: logging.LogRecord) -> None:
        from ledger.runtime.logs import log_to_stderr

        root = logging.getLogger()
        root.removeHandler(self)
        log_to_stderr()
        root.handle(record)


def log_to_stderr_late() -> None:
    """Send what this process and its libraries log by `logging` where `log_to_stderr` sends it, and in its form."""
    logging.basicConfig(handlers=[_First()], level=logging.WARNING)
    logging.captureWarnings(True)
