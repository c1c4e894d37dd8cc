"""The end of a command by Ctrl-C: one line, and the exit code that shells have for it."""

from __future__ import annotations

STOPPED = "kledger: stopped by Ctrl-C"
INTERRUPTED = 130
"""128 and the number of the signal."""
