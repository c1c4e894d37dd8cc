"""Loads structlog without rich, with which it would draw tracebacks: 4 MiB and a tenth of a second of each process.

Ours are plain (logs.py beside this). structlog has no switch for it, and does without where rich is not installed.
"""

from __future__ import annotations

import sys


def load_structlog() -> None:
    """Load it, before whatever else does. Whoever needs rich afterwards finds it."""
    if "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it fails at once
    try:
        import structlog as structlog
    finally:
        del sys.modules["rich"]
