"""A database file whose blocks are not what was written: how DuckDB says so, and the mark that stands beside it then.

Opening a file reads few of its blocks. Where a later read meets a damaged one, the mark has the next start make the
file anew, rather than open it again.
"""

from __future__ import annotations

from pathlib import Path

_SAID = "Corrupt database file"


def is_damaged(error: Exception) -> bool:
    """Whether DuckDB read a block whose checksum is another one: the disk, or somebody, changed it.

    DuckDB begins an error with its kind, which tells it from one that quotes a statement or an event.
    """
    said = str(error)
    return said.startswith(f"IO Error: {_SAID}") or (said.startswith("FATAL Error") and _SAID in said)


def damaged_mark(path: Path) -> Path:
    """The file that stands beside a view file in which a damaged block was found."""
    return path.with_name(f"{path.name}.damaged")
