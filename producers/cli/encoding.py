"""Output in the encoding that the terminal has."""

from __future__ import annotations

import io
import sys


def degrade() -> None:
    """Write characters that the terminal's encoding lacks as escapes (`\\u6d4b`), in answers, errors and help.

    Otherwise an ASCII terminal, or a command line with bytes that are no text, would raise UnicodeEncodeError.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
