"""Where does a process of a node say what happens to it? On stderr, one JSON document a line, without any secret."""

from __future__ import annotations

import logging
import sys

import structlog

from ledger.redaction import Redactor


class _RedactedFormatter(logging.Formatter):
    """What libraries log, message and traceback alike."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(logging.BASIC_FORMAT)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


def log_to_stderr() -> None:
    """Send our log lines and those of the libraries to stderr."""
    redactor = Redactor()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_RedactedFormatter(redactor))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redactor,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
