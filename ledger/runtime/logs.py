"""Logging setup for the processes of a node: to stderr, with secrets redacted.

One JSON document a line; human-readable lines where stderr is a terminal. KLEDGER_LOG_LEVEL sets the level for a node
and the processes that it starts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from typing import Literal, TextIO, get_args

import structlog

from kledger.contract.errors import InvalidPayload
from ledger.runtime.redaction import Redactor

Level = Literal["debug", "info", "warning", "error"]
LEVELS: tuple[Level, ...] = get_args(Level)
VARIABLE = "KLEDGER_LOG_LEVEL"
_DEFAULT: Level = "info"


def log_level() -> Level:
    """The configured level. Raises InvalidPayload for an unknown one."""
    value = os.environ.get(VARIABLE, "").strip().lower() or _DEFAULT
    for level in LEVELS:
        if level == value:
            return level
    raise InvalidPayload(f"{VARIABLE} is {value[:100]!r}: write {', '.join(LEVELS)}")


def log_to_stderr() -> None:
    """Send log lines of the product and of libraries to stderr, from log_level on. Raises InvalidPayload as it does."""
    chosen = log_level()
    redactor = Redactor()
    annotate: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    render: list[structlog.typing.Processor] = [
        structlog.processors.format_exc_info,
        redactor,
        _renderer(),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*annotate, structlog.stdlib.add_logger_name],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*annotate, *render],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[chosen.upper()]),
        logger_factory=structlog.PrintLoggerFactory(_Lossy(sys.stderr)),  # type: ignore[arg-type]  # what it uses of it
    )


class _Lossy:
    """A stream that loses what it cannot write: a log on a full disk, or one that nobody reads, ends no work."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def _renderer() -> structlog.typing.Processor:
    if sys.stderr.isatty():
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(default=str)
